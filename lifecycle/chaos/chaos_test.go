package chaos_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

var everything = append(append(chaos.Generate(
	chaos.Pod, chaos.PersistentVolumeClaim, chaos.StatefulSet, chaos.Deployment, chaos.Service, chaos.EndpointSlice,
	chaos.ConfigMap, chaos.Secret, chaos.PodDisruptionBudget, chaos.NetworkPolicy, chaos.ControllerRevision, chaos.Lease,
), chaos.Pods()...), chaos.Machines()...)

func TestCatalogueIsValid(t *testing.T) {
	if err := everything.Validate(); err != nil {
		t.Error(err)
	}
	if err := append(everything, everything[0]).Validate(); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a name that is taken: %v", err)
	}
}

func TestGenerateCrossesObjectsWithPoliciesAndFields(t *testing.T) {
	for _, name := range []string{
		"pod-delete-background", "statefulset-delete-orphan", "persistentvolumeclaim-delete-foreground",
		"persistentvolumeclaim-delete-background-all", "service-strip-labels", "secret-strip-owners",
		"configmap-add-finalizer", "statefulset-edit-replicas-zero", "pod-force-delete", "pod-evict", "node-off", "apiserver-away", "operator-kill",
	} {
		if _, ok := everything.Named(name); !ok {
			t.Errorf("the catalogue has no %s", name)
		}
	}
}

// The safe subset is what a person may run against an instance that serves.
func TestSafeSubsetDestroysNoVolumeAndStaysInTheAPI(t *testing.T) {
	safe := everything.Safe()
	if len(safe) < 10 {
		t.Errorf("the safe subset has only %d manipulations", len(safe))
	}
	for _, m := range safe {
		if m.DestroysCopy(false) || m.Object.Scope != chaos.ScopeInstance || m.Verb == chaos.VerbKill || m.Verb == chaos.VerbForceDelete || m.All {
			t.Errorf("%s is not safe", m.Name)
		}
	}
}

func TestDeletedPodTakesVolatileDataOnly(t *testing.T) {
	cases := map[string][2]bool{ // with a volume, and without
		"pod-delete-background": {false, true}, "persistentvolumeclaim-delete-background": {true, true},
		"service-delete-background": {false, false}, "statefulset-delete-orphan": {false, false}, "statefulset-delete-background": {false, true},
		"node-cordon": {false, false}, "pod-kill": {false, false},
	}
	for name, want := range cases {
		m, _ := everything.Named(name)
		if got := [2]bool{m.DestroysCopy(false), m.DestroysCopy(true)}; got != want {
			t.Errorf("%s destroys a copy: %v, want %v", name, got, want)
		}
	}
}

func TestCompositionIsReadBackFromItsText(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		c := chaos.Compose(everything, 1+chance.IntN(3), chance)
		got, err := chaos.Parse(c.String(), everything)
		if diff := cmp.Diff(c, got); err != nil || diff != "" {
			t.Fatalf("%s: %v %s", c, err, diff)
		}
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	cases := map[string]string{
		"": "at least one move", "pod-kill": "needs a target", "pod-kill@x": `"x" is not a number`, "pod-kill@-1": `"-1" is not a number`,
		"pod-kill@0+soon": `"soon" is not a duration`, "pod-love@0": `no manipulation "pod-love"`,
	}
	for text, want := range cases {
		if _, err := chaos.Parse(text, everything); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestShrinkKeepsWhatItTakesToFail(t *testing.T) {
	c := chaos.Composition{
		{Name: "service-strip-labels", Pause: time.Second}, {Name: "pod-kill", Target: 1, Pause: time.Second},
		{Name: "configmap-edit-empty", Pause: time.Second}, {Name: "operator-kill"},
	}
	fails := func(c chaos.Composition) bool {
		return strings.Contains(c.String(), "pod-kill") && strings.Contains(c.String(), "operator-kill")
	}
	if got := chaos.Shrink(c, fails).String(); got != "pod-kill@1 operator-kill@0" {
		t.Errorf("the shortest is %q", got)
	}
}
