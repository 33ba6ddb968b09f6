package driver

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/apps/etcd"
)

// While no quorum answers, a member is identified by its data. A pod without a StatefulSet keeps a
// claim that is being deleted, so it counts as a member as long as it exists.
func TestOrphanedPodKeepsDeletedClaim(t *testing.T) {
	want := plain("")
	going := &metav1.Time{Time: noon}
	controlled := []metav1.OwnerReference{{Kind: "StatefulSet", UID: "set", Controller: new(true)}}
	cases := map[string]struct {
		reason string
		pod    *corev1.Pod
		known  bool
	}{
		"Orphan": {"the pod stays", &corev1.Pod{}, true},
		"Going":  {"the pod ends, and the claim with it", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: going}}, false},
		"Owned":  {"the pod is deleted with its StatefulSet", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: controlled}}, false},
		"None":   {"the claim is a remnant of a deleted member", nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: etcd.ClaimName(want, "my-etcd-0"), DeletionTimestamp: going}}
			p := parts{claims: map[string]*corev1.PersistentVolumeClaim{"my-etcd-0": claim}, pods: map[string]*corev1.Pod{}}
			if c.pod != nil {
				p.pods["my-etcd-0"] = c.pod
			}
			members := (&Driver{healthTimes: newHealthTimes(), now: time.Now}).members(want, p, memberList{}, nil)
			if got := len(members) == 1; got != c.known {
				t.Errorf("%s: known %v", c.reason, got)
			}
		})
	}
}
