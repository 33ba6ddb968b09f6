package driver

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/apps/etcd"
)

// A pod of an earlier cluster of the same name is never taken for a member of this one.
func TestOwned(t *testing.T) {
	controller := func(kind, name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: uid, Controller: new(true)}}
	}
	set := func(uid, cluster types.UID) appsv1.StatefulSet {
		return appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "my-etcd-0", UID: uid, OwnerReferences: controller("EtcdCluster", "my-etcd", cluster)}}
	}
	going := set("going", "uid")
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	sets := []appsv1.StatefulSet{set("ours", "uid"), going, set("theirs", "earlier")}
	cases := map[string]struct {
		reason, name, clusterID string
		owners                  []metav1.OwnerReference
		want                    bool
	}{
		"Ours":        {"its StatefulSet is ours", "my-etcd-0-0", "", controller("StatefulSet", "my-etcd-0", "ours"), true},
		"Going":       {"its StatefulSet is being deleted, and it still runs", "my-etcd-0-0", "", controller("StatefulSet", "my-etcd-0", "going"), true},
		"Theirs":      {"its StatefulSet is of an earlier cluster", "my-etcd-0-0", "c1", controller("StatefulSet", "my-etcd-0", "theirs"), false},
		"Gone":        {"its StatefulSet is gone, and it goes, too", "my-etcd-0-0", "c1", controller("StatefulSet", "my-etcd-0", "gone"), false},
		"Orphan":      {"its StatefulSet left it behind, and its answer proves who it is", "my-etcd-0-0", "c1", nil, true},
		"EarlyOrphan": {"nothing proves yet who it is", "my-etcd-0-0", "", nil, false},
		"OtherName":   {"a pod that somebody labelled", "another", "c1", nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := plain("")
			want.Status.ClusterID = c.clusterID
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: c.name, OwnerReferences: c.owners, Labels: map[string]string{etcd.LabelMember: "my-etcd-0"},
			}}
			if got := owned(want, sets)(pod); got != c.want {
				t.Errorf("%s: got %v", c.reason, got)
			}
		})
	}
}
