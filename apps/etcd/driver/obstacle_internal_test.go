package driver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// An object with the name of a member's, or whose deletion does not finish, keeps it from starting.
func TestObstacle(t *testing.T) {
	if err := etcdv1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	mine := []metav1.OwnerReference{{APIVersion: "etcd.database.coreos.com/v1", Kind: "EtcdCluster", Name: "my-etcd", UID: "uid", Controller: new(true)}}
	other := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Deployment", Name: "web", UID: "other", Controller: new(true)}}
	going := func(ago time.Duration, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "ns", Name: "my-etcd-0", OwnerReferences: mine, Finalizers: finalizers,
			DeletionTimestamp: &metav1.Time{Time: noon.Add(-ago)},
		}
	}
	config := func(owners []metav1.OwnerReference) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "my-etcd-0-bootstrap", OwnerReferences: owners}}
	}
	stuck := etcd.Obstacle{Kind: "StatefulSet", Name: "my-etcd-0", Going: true, Finalizers: "example.com/hold"}
	cases := map[string]struct {
		reason string
		obj    client.Object
		want   etcd.Obstacle
	}{
		"None":       {"all names are free", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, etcd.Obstacle{}},
		"Held":       {"a finalizer of another keeps it", &appsv1.StatefulSet{ObjectMeta: going(time.Second, "example.com/hold")}, stuck},
		"Foreground": {"it is deleted after its pod", &appsv1.StatefulSet{ObjectMeta: going(time.Second, "foregroundDeletion")}, etcd.Obstacle{}},
		"Slow": {
			"its pod does not go", &appsv1.StatefulSet{ObjectMeta: going(time.Hour, "foregroundDeletion")},
			etcd.Obstacle{Kind: "StatefulSet", Name: "my-etcd-0", Going: true},
		},
		"Foreign":   {"another object has the name", config(nil), etcd.Obstacle{Kind: "ConfigMap", Name: "my-etcd-0-bootstrap"}},
		"Owned":     {"it has another owner", config(other), etcd.Obstacle{Kind: "ConfigMap", Name: "my-etcd-0-bootstrap", Owner: "Deployment web"}},
		"OurOwnMap": {"it is ours", config(mine), etcd.Obstacle{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(c.obj).Build()
			d := &Driver{client: reader, live: reader, now: func() time.Time { return noon }}
			members := []etcd.Member{{Name: "my-etcd-0"}}
			if err := d.findObstacles(t.Context(), plain(""), parts{}, members); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, members[0].Obstacle); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}
