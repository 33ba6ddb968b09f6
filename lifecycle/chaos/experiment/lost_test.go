package experiment_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

// The report says which volumes and members an act has cost.
func TestWhatIsLostIsReported(t *testing.T) {
	cases := map[string]struct {
		reason string
		kept   map[string]string // after the first act
		lost   []string
		says   string
	}{
		"None":   {"the same ones are there", map[string]string{"member 0": "a", "PersistentVolumeClaim 0": "u"}, []string{}, "lost: none."},
		"More":   {"what was added is no loss", map[string]string{"member 0": "a", "member 3": "d", "PersistentVolumeClaim 0": "u"}, []string{}, "lost: none."},
		"Claim":  {"a volume is gone", map[string]string{"member 0": "a"}, []string{"PersistentVolumeClaim 0"}, "lost: PersistentVolumeClaim 0 of etcd/e."},
		"Member": {"another member has its name", map[string]string{"member 0": "b", "PersistentVolumeClaim 0": "u"}, []string{"member 0 (another one has its name)"}, "lost: member 0 (another"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving("etcd/e")
			w.state.Kept, w.keeps = map[string]string{"member 0": "a", "PersistentVolumeClaim 0": "u"}, c.kept
			r := try(t, func(e *experiment.Experiment) { e.Limits.Budget = 1 }, w)
			if diff := cmp.Diff(c.lost, r.Acts[0].Lost); diff != "" || !strings.Contains(r.Summary(), c.says) {
				t.Errorf("%s: %s %s", c.reason, r.Summary(), diff)
			}
		})
	}
}

// A report never says that nothing was lost if that could not be seen.
func TestLossThatCannotBeSeen(t *testing.T) {
	r := experiment.Report{Acts: []experiment.Act{{Instance: "etcd/e", LostUnknown: "forbidden"}}}
	if said := r.Summary(); !strings.Contains(said, "lost: not known of etcd/e.") {
		t.Error(said)
	}
}
