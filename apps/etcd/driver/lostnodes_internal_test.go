package driver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// A volume is lost with its node if it is bound to that node, and not to a zone.
func TestLostNodesOfVolumes(t *testing.T) {
	bound := func(key, value string) *corev1.VolumeNodeAffinity {
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}},
		}}}
	}
	cases := map[string]struct {
		reason   string
		trouble  lifecycle.PodProblem
		affinity *corev1.VolumeNodeAffinity
		want     string
	}{
		"Gone":     {"the node of a local volume was deleted", lifecycle.PodProblemUnschedulable, bound(corev1.LabelHostname, "gone"), "gone"},
		"Driver":   {"a storage driver has a label of its own", lifecycle.PodProblemUnschedulable, bound("storage.example.com/node", "gone"), "gone"},
		"Exists":   {"the node has no room", lifecycle.PodProblemUnschedulable, bound(corev1.LabelHostname, "n1"), ""},
		"Zone":     {"another node of the zone may come", lifecycle.PodProblemUnschedulable, bound(corev1.LabelTopologyZone, "a"), ""},
		"Anywhere": {"the volume is in the network", lifecycle.PodProblemUnschedulable, nil, ""},
		"Runs":     {"the pod has another problem", lifecycle.PodProblemCrashLoopBackOff, bound(corev1.LabelHostname, "gone"), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n1 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}}}
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: c.affinity}}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{selectedNode: "gone"}}}
			claim.Spec.VolumeName = "v"
			d := &Driver{live: fake.NewClientBuilder().WithObjects(n1, volume).Build()}
			members := []etcd.Member{{Name: "e-0", Pod: etcd.Pod{Trouble: c.trouble}}, {Name: "e-1", Pod: etcd.Pod{Trouble: c.trouble}}}
			d.findLostNodes(t.Context(), parts{claims: map[string]*corev1.PersistentVolumeClaim{"e-0": claim}}, members)
			if members[0].Volume.NodeLost != c.want || members[1].Volume.NodeLost != "" {
				t.Errorf("%s: got %q and %q", c.reason, members[0].Volume.NodeLost, members[1].Volume.NodeLost)
			}
		})
	}
}
