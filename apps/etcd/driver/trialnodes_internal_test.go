package driver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/apps/etcd"
)

// TestTrialRunsWhereTheVolumeIs: a node selector that only another node has shows before the member restarts.
func TestTrialRunsWhereTheVolumeIs(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	term := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	host, zones, disk := in("kubernetes.io/hostname", "n2"), in("zone", "a", "b"), in("disk", "hdd")
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term(host)}}}
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}
	affinity := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	nodes := func(label string) corev1.PodSpec {
		return corev1.PodSpec{NodeSelector: map[string]string{"disk": label}}
	}
	own := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2", Labels: map[string]string{"disk": "ssd"}}}
	cases := map[string]struct {
		reason string
		spec   corev1.PodSpec
		claim  *corev1.PersistentVolumeClaim
		want   *corev1.Affinity
		node   string
	}{
		"Matches":  {"the member's node matches", nodes("ssd"), claim, nil, "n2"},
		"Empty":    {"an empty term selects nothing", corev1.PodSpec{Affinity: affinity(corev1.NodeSelectorTerm{})}, claim, affinity(corev1.NodeSelectorTerm{}), ""},
		"Selector": {"the selector stays, and the volume's node is added", nodes("hdd"), claim, affinity(term(host)), ""},
		"Affinity": {"each alternative needs the volume's node", corev1.PodSpec{Affinity: affinity(term(zones), term(disk))}, claim, affinity(term(zones, host), term(disk, host)), ""},
		"Plain":    {"the member's node takes any pod", corev1.PodSpec{}, claim, nil, "n2"},
		"NoVolume": {"the volume no longer exists", nodes("hdd"), &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "w"}}, nil, ""},
		"NoClaim":  {"the claim no longer exists", nodes("hdd"), nil, nil, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := &Driver{live: fake.NewClientBuilder().WithObjects(volume, own).Build()}
			pod := &corev1.Pod{Spec: c.spec}
			if err := d.placeTrial(t.Context(), pod, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n2"}}, c.claim); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, pod.Spec.Affinity); diff != "" || pod.Spec.NodeName != c.node {
				t.Errorf("%s: on %q: %s", c.reason, pod.Spec.NodeName, diff)
			}
		})
	}
}

// TestTakes: the member's own node may not take the member again.
func TestTakes(t *testing.T) {
	taint := func(effect corev1.TaintEffect) []corev1.Taint {
		return []corev1.Taint{{Key: "dedicated", Value: "etcd", Effect: effect}}
	}
	tolerates := []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	cases := map[string]struct {
		node corev1.NodeSpec
		pod  []corev1.Toleration
		want bool
	}{
		"Free":      {corev1.NodeSpec{}, nil, true},
		"Tainted":   {corev1.NodeSpec{Taints: taint(corev1.TaintEffectNoSchedule)}, nil, false},
		"Evicts":    {corev1.NodeSpec{Taints: taint(corev1.TaintEffectNoExecute)}, nil, false},
		"Prefers":   {corev1.NodeSpec{Taints: taint(corev1.TaintEffectPreferNoSchedule)}, nil, true},
		"Tolerated": {corev1.NodeSpec{Taints: taint(corev1.TaintEffectNoSchedule)}, tolerates, true},
		"Cordoned":  {corev1.NodeSpec{Unschedulable: true}, tolerates, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: c.node}
			d := &Driver{live: fake.NewClientBuilder().WithObjects(node).Build()}
			pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: c.pod}}
			if got, err := d.takes(t.Context(), "n", pod); err != nil || got != c.want {
				t.Errorf("got %v, %v", got, err)
			}
			if got, err := d.takes(t.Context(), "other", pod); err != nil || got {
				t.Errorf("a node that does not exist: %v, %v", got, err)
			}
			trial := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "e-trial", Annotations: map[string]string{etcd.AnnotationTried: "e-1"}}, Spec: pod.Spec}
			d.live = fake.NewClientBuilder().WithObjects(node, trial).Build()
			cached := trial.DeepCopy()
			cached.Spec = corev1.PodSpec{}
			p := parts{trial: cached, pods: map[string]*corev1.Pod{"e-1": {Spec: corev1.PodSpec{NodeName: "n"}}}}
			if got := d.findMovable(t.Context(), p, etcd.Trial{Unscheduled: "no node"}); got.Movable != c.want {
				t.Errorf("without a node it is movable: %v", got.Movable)
			}
		})
	}
}
