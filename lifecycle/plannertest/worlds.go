package plannertest

import (
	"iter"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// enough is how much is found to choose the shortest from: rules that are wrong are wrong in many worlds.
const enough = 400

// weight is how much a finding counts: those without an end take long, and none is shorter than another.
func (f *Finding) weight() int {
	if f.Fault == NonTerminating {
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

// Survey follows the rules from every world. It returns how many there were until enough was found, and the finding
// with the shortest story, or nil.
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

// Bags are all collections of up to so many of the things, in which order does not count: for worlds of members that
// are told apart by their state only. The slice is valid until the next one.
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

// Rows are all sequences of up to so many of the things, in which order counts: for worlds whose members have ranks.
// There are len(things)^most of the longest. The slice is valid until the next one.
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
