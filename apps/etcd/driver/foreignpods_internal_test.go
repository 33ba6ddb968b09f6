package driver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
)

// A pod that another controller or a user created keeps the member of its name from starting. A pod of an
// earlier StatefulSet of the member does not: Kubernetes is about to delete or to orphan it.
func TestForeignPodIsAnObstacle(t *testing.T) {
	if err := etcdv1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	want := plain("")
	cases := map[string]struct {
		kind, name string
		uid        types.UID
		want       etcd.Obstacle
	}{
		"Own":     {"StatefulSet", "my-etcd-3", "set", etcd.Obstacle{}},
		"Earlier": {"StatefulSet", "my-etcd-3", "gone", etcd.Obstacle{}},
		"Other":   {"PodSet", "my-etcd-3", "set-of-pods", etcd.Obstacle{Kind: "Pod", Name: "my-etcd-3-0", Owner: "PodSet my-etcd-3"}},
		"User":    {"", "", "", etcd.Obstacle{Kind: "Pod", Name: "my-etcd-3-0"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "my-etcd-3", UID: "set", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(want, kind)},
				Labels: map[string]string{lifecycle.LabelApp: etcd.Name, lifecycle.LabelInstance: want.Name}, CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute)),
			}}
			set.Spec.Selector = &metav1.LabelSelector{}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "my-etcd-3-0"}}
			if c.kind != "" {
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: c.kind, Name: c.name, UID: c.uid, Controller: new(true)}}
			}
			reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(set, pod).Build()
			d := New(kube.Access{Client: reader, Live: reader, Now: time.Now}).(*Driver)
			d.now = func() time.Time { return noon }
			v, err := d.observe(t.Context(), want)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range v.world.Members {
				if diff := cmp.Diff(c.want, m.Obstacle); m.Name == "my-etcd-3" && diff != "" {
					t.Error(diff)
				}
			}
			if len(v.world.Members) == 0 {
				t.Error("the member is not observed")
			}
		})
	}
}
