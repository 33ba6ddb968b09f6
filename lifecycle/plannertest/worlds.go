package plannertest

import (
	"iter"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// enough is the weight of findings after which the search ends: wrong rules are wrong in many worlds.
const enough = 400

// weight is how much a finding counts: rules that do not terminate take long, and their stories are equally long.
func (f *Finding) weight() int {
	if f.Fault == FaultNonTerminating {
		return enough / 4
	}
	return 1
}

// Worlds follows the rules from every world, and fails the test with the finding that has the shortest story.
func Worlds[T lifecycle.Resource, W any](t sim.T, s Subject[T, W], every iter.Seq2[T, W]) {
	t.Helper()
	count, worst := s.Survey(every)
	if worst != nil {
		t.Fatalf("%v", worst)
	}
	if count == 0 {
		t.Fatalf("there is no world to judge")
	}
	t.Logf("%d worlds", count)
}

// Survey follows the rules from every world until enough findings exist. It returns the number of worlds, and the
// finding with the shortest story, or nil.
func (s Subject[T, W]) Survey(every iter.Seq2[T, W]) (count int, worst *Finding) {
	c, found := newExplorer(s), 0
	for want, seen := range every {
		count++
		f := c.judge(want, seen)
		if f == nil {
			continue
		}
		if worst == nil || f.shorter(worst) {
			worst = f
		}
		if found += f.weight(); found >= enough || len(worst.Story) == 0 {
			break
		}
	}
	return count, worst
}

func (f *Finding) shorter(than *Finding) bool {
	if len(f.Story) != len(than.Story) {
		return len(f.Story) < len(than.Story)
	}
	return len(f.Seen)+len(f.Want) < len(than.Seen)+len(than.Want)
}

// Bags returns all multisets of at most that many things, for worlds whose members differ only in their state. Each
// slice is valid until the next iteration.
func Bags[E any](most int, things ...E) iter.Seq[[]E] {
	return func(yield func([]E) bool) {
		var extend func(bag []E, from int) bool
		extend = func(bag []E, from int) bool {
			if !yield(bag) {
				return false
			}
			for i := from; i < len(things) && len(bag) < most; i++ {
				if !extend(append(bag[:len(bag):len(bag)], things[i]), i) {
					return false
				}
			}
			return true
		}
		extend(nil, 0)
	}
}

// Rows returns all sequences of at most that many things, for worlds whose members are ordered. There are
// len(things)^most of the longest. Each slice is valid until the next iteration.
func Rows[E any](most int, things ...E) iter.Seq[[]E] {
	return func(yield func([]E) bool) {
		var extend func(row []E) bool
		extend = func(row []E) bool {
			if !yield(row) {
				return false
			}
			for i := 0; i < len(things) && len(row) < most; i++ {
				if !extend(append(row[:len(row):len(row)], things[i])) {
					return false
				}
			}
			return true
		}
		extend(nil)
	}
}
