package metrics

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// app is the application of the test.
const app = "progress"

// values returns the series of the family that the application has, by their state.
func values(t *testing.T, family string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		if f.GetName() != family {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["app"] == app {
				found[labels["state"]] = m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
			}
		}
	}
	return found
}

// An object is counted in one state, and the time until it is settled is measured once.
func TestProgress(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewProgress(app, func() time.Time { return now })
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	p.Note(a, "Wait")
	p.Note(b, "Wait")
	p.Drift(b, true)
	now = now.Add(3 * time.Second)
	p.Note(a, "Settled")
	p.Note(a, "Settled")
	if got := values(t, "governor_objects"); got["Wait"] != 1 || got["Settled"] != 1 {
		t.Errorf("the states are %v", got)
	}
	if got := values(t, "governor_time_to_ready_seconds")[""]; got != 3 {
		t.Errorf("it took %v s", got)
	}
	if got := values(t, "governor_drifted_objects")[""]; got != 1 {
		t.Errorf("%v objects have drifted", got)
	}
	p.Forget(b)
	if got := values(t, "governor_objects"); got["Wait"] != 0 {
		t.Errorf("a forgotten object is counted: %v", got)
	}
	if got := values(t, "governor_drifted_objects")[""]; got != 0 {
		t.Errorf("a forgotten object has drifted: %v", got)
	}
	Unregister(app)
	if got := values(t, "governor_objects"); len(got) != 0 {
		t.Errorf("series are left: %v", got)
	}
}
