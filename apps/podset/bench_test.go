package podset_test

import (
	"strings"
	"testing"

	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// While 500 pods become ready, each of them makes a turn.
func BenchmarkTurn(b *testing.B) {
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
