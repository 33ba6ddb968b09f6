package podset_test

import (
	"strings"
	"testing"

	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// Each of 500 pods that become ready triggers a reconcile.
func BenchmarkReconcile(b *testing.B) {
	want, seen := set(500), world(strings.Repeat("rs", 250))
	p := podset.Planner{}
	for b.Loop() {
		d := p.Next(want, seen, now)
		p.Status(want, seen)
		p.Conditions(want, seen, d)
		if d.Outcome != lifecycle.OutcomeWait {
			b.Fatal(d)
		}
	}
}
