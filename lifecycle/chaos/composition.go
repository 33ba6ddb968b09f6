package chaos

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Move is one manipulation in a composition.
type Move struct {
	// Name of the manipulation.
	Name string
	// Target says which object, counted in the order of their names; it is taken modulo
	// their number.
	Target int
	// Pause is the time until the next move; after the last move, until the adversary stops
	// and undoes what lasts.
	Pause time.Duration
}

// Composition is what an adversary does in one round: some moves, one after another.
type Composition []Move

// String is the text form that [Parse] reads: "pod-kill@1+2s node-off@0".
func (c Composition) String() string {
	words := make([]string, len(c))
	for i, m := range c {
		words[i] = m.Name + "@" + strconv.Itoa(m.Target)
		if m.Pause > 0 {
			words[i] += "+" + m.Pause.String()
		}
	}
	return strings.Join(words, " ")
}

// Parse reads the text form of a composition of manipulations in the catalogue.
func Parse(text string, from Catalogue) (Composition, error) {
	var c Composition
	for _, word := range strings.Fields(text) {
		m, err := parseMove(word)
		if err != nil {
			return nil, err
		}
		if _, ok := from.Named(m.Name); !ok {
			return nil, fmt.Errorf("%q: the catalogue has no manipulation %q", word, m.Name)
		}
		c = append(c, m)
	}
	if len(c) == 0 {
		return nil, fmt.Errorf("a composition needs at least one move, such as pod-kill@0")
	}
	return c, nil
}

func parseMove(word string) (m Move, err error) {
	name, rest, ok := strings.Cut(word, "@")
	if !ok {
		return m, fmt.Errorf("%q is no move: it needs a target, such as pod-kill@0", word)
	}
	target, pause, paused := strings.Cut(rest, "+")
	m.Name = name
	if m.Target, err = strconv.Atoi(target); err != nil || m.Target < 0 {
		return m, fmt.Errorf("%q: the target %q is not a number from 0", word, target)
	}
	if paused {
		if m.Pause, err = time.ParseDuration(pause); err != nil || m.Pause < 0 {
			return m, fmt.Errorf("%q: the pause %q is not a duration such as 2s", word, pause)
		}
	}
	return m, nil
}

// pauses between two moves: none, and some around the times that an operator needs to
// notice and to act.
var pauses = []time.Duration{0, 200 * time.Millisecond, time.Second, 3 * time.Second, 6 * time.Second}

// holds are for how long something lasts: shorter and longer than Kubernetes needs to
// notice that a node is lost.
var holds = []time.Duration{2 * time.Second, 10 * time.Second, 30 * time.Second}

// Compose chooses length moves from the catalogue.
func Compose(from Catalogue, length int, chance *rand.Rand) Composition {
	c, lasts := make(Composition, length), false
	for i := range c {
		m := from[chance.IntN(len(from))]
		c[i] = Move{Name: m.Name, Target: chance.IntN(3), Pause: pauses[chance.IntN(len(pauses))]}
		lasts = lasts || m.Lasts
	}
	if c[length-1].Pause = 0; lasts {
		c[length-1].Pause = holds[chance.IntN(len(holds))]
	}
	return c
}

// Shrink returns the shortest composition that it finds for which fails returns true. It
// drops one move after another, and then the pauses. The given composition fails.
func Shrink(c Composition, fails func(Composition) bool) Composition {
	for i := 0; i < len(c) && len(c) > 1; {
		if shorter := without(c, i); fails(shorter) {
			c, i = shorter, 0
			continue
		}
		i++
	}
	if hurried := unpaused(c); hurried.String() != c.String() && fails(hurried) {
		return hurried
	}
	return c
}

func without(c Composition, i int) Composition {
	shorter := append(append(Composition{}, c[:i]...), c[i+1:]...)
	shorter[len(shorter)-1].Pause = c[len(c)-1].Pause
	return shorter
}

func unpaused(c Composition) Composition {
	hurried := append(Composition{}, c...)
	for i := range hurried {
		hurried[i].Pause = 0
	}
	return hurried
}
