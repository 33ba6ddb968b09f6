package experiment

import (
	"math/rand/v2"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// deck deals the manipulations of a catalogue in an order by chance. Each is dealt once
// before any is dealt again.
type deck struct {
	all    chaos.Catalogue
	left   []int
	chance *rand.Rand
}

// draw is a manipulation, and which of the objects it is done to.
type draw struct {
	chaos.Manipulation

	target int
}

// draw deals the first manipulation that is not refused; false if all are.
func (d *deck) draw(refused func(chaos.Manipulation) bool) (draw, bool) {
	for range 2 { // those that are left, and all
		for i, n := range d.left {
			if m := d.all[n]; !refused(m) {
				d.left = append(d.left[:i:i], d.left[i+1:]...)
				return draw{m, d.chance.IntN(1 << 16)}, true
			}
		}
		d.left = d.chance.Perm(len(d.all))
	}
	return draw{}, false
}

// decks has one deck for each instance, and chooses among the instances.
type decks struct {
	chance *rand.Rand
	of     []*deck
}

func newDecks(seed uint64, instances int, all chaos.Catalogue) *decks {
	d := &decks{chance: rand.New(rand.NewPCG(seed, 0))}
	for i := range instances {
		d.of = append(d.of, &deck{all: all, chance: rand.New(rand.NewPCG(seed, uint64(i)+1))})
	}
	return d
}

// next chooses one of the instances that are free.
func (d *decks) next(free []int) int { return free[d.chance.IntN(len(free))] }
