package engine

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/governor-dev/governor/engine/internal/metrics"
)

func groupKind(kind string) schema.GroupKind { return schema.GroupKind{Group: "test", Kind: kind} }

// Two kinds never share a Name: what belongs to their objects could not be told apart.
func TestEachKindAndNameIsRegisteredOnce(t *testing.T) {
	var r registry
	if _, err := r.add(groupKind("Cluster"), "db"); err != nil {
		t.Fatal(err)
	}
	for want, second := range map[string]struct{ kind, name string }{
		"the kind Cluster.test is registered as db already":                {"Cluster", "other"},
		"the kind Cluster.test has the same Name; each kind needs its own": {"Backup", "db"},
	} {
		if _, err := r.add(groupKind(second.kind), second.name); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	r.remove(groupKind("Cluster"))
	if _, err := r.add(groupKind("Backup"), "db"); err != nil {
		t.Errorf("the name is free again: %v", err)
	}
}

func TestNameIsALabelValue(t *testing.T) {
	for _, name := range []string{"", "a b", strings.Repeat("a", 64)} {
		err := Register(&Operator{}, App[*fake, struct{}]{Name: name})
		if err == nil || !strings.Contains(err.Error(), "the Name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// An application that has not begun when it is stopped never begins, and one that runs ends.
func TestStoppedApplicationEnds(t *testing.T) {
	var r registry
	early, _ := r.add(groupKind("Early"), "early")
	early.stop()
	early.stop()
	if _, begins := early.begin(t.Context()); begins {
		t.Error("it begins after it was stopped")
	}
	<-early.ended
	running, _ := r.add(groupKind("Running"), "running")
	ctx, begins := running.begin(t.Context())
	if !begins || ctx.Err() != nil {
		t.Error("it does not begin")
	}
	running.stop()
	<-ctx.Done()
}

// series counts the series of the application.
func series(t *testing.T, app string) (n int) {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "app" && label.GetValue() == app {
					n++
				}
			}
		}
	}
	return n
}

func TestUnregisterForgets(t *testing.T) {
	op := &Operator{}
	if err := op.Unregister(t.Context(), groupKind("None")); err == nil || !strings.Contains(err.Error(), "no application of the kind None.test") {
		t.Errorf("got %v", err)
	}
	r, _ := op.registered.add(groupKind("Fake"), "gone")
	r.forget = func() { metrics.Unregister("gone") }
	metrics.Steps.WithLabelValues("gone", "Add", "Routine", "ok").Inc()
	metrics.Running.WithLabelValues("gone").Set(1)
	if n := series(t, "gone"); n != 2 {
		t.Fatalf("it has %d series", n)
	}
	if err := op.Unregister(t.Context(), groupKind("Fake")); err != nil {
		t.Fatal(err)
	}
	if n := series(t, "gone"); n != 0 {
		t.Errorf("%d series are left", n)
	}
	if _, known := op.registered.get(groupKind("Fake")); known {
		t.Error("it is still registered")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	busy, _ := op.registered.add(groupKind("Busy"), "busy")
	_, _ = busy.begin(t.Context())
	if err := op.Unregister(ended, groupKind("Busy")); err == nil || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("got %v", err)
	}
}
