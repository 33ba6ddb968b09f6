package fakeapp

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// Model is an in-memory ring and cluster. It implements sim.Model.
type Model struct {
	world    World
	provided map[string]bool
}

// NewModel returns an empty ring.
func NewModel() *Model { return &Model{provided: map[string]bool{}} }

var errStale = errors.New("the member list has changed since it was observed")

// Observe implements sim.Model.
func (m *Model) Observe(time.Time) World { return m.world.copy() }

// Provide implements sim.Model.
func (m *Model) Provide(_ *Ring, resources []lifecycle.Object, fx *sim.Effects) error {
	for _, r := range resources {
		if m.provided[r.GetName()] {
			continue
		}
		err := fx.Do("apply "+r.GetName(), func() error { m.provided[r.GetName()] = true; return nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// Act implements sim.Model. Each request to one of the two systems is an effect.
func (m *Model) Act(_ *Ring, seen World, s lifecycle.Step, fx *sim.Effects) error {
	pod := func(h Health) func() error {
		return func() error { return m.edit(s.Target, func(x *Member) { x.Pod = h }) }
	}
	switch s.Name {
	case "Add":
		return inOrder(
			fx.Do("list "+s.Target, func() error { return m.list(seen, s.Target) }),
			func() error { return fx.Do("create pod "+s.Target, pod(Starting)) })
	case "CreatePod":
		return fx.Do("create pod "+s.Target, pod(Starting))
	case "DeletePod":
		return fx.Do("delete pod "+s.Target, pod(Absent))
	case "Promote":
		return fx.Do("promote "+s.Target, func() error { return m.relist(seen, s.Target, Member{Listed: true, Voter: true}) })
	case "Remove":
		return inOrder(
			fx.Do("unlist "+s.Target, func() error { return m.relist(seen, s.Target, Member{}) }),
			func() error { return fx.Do("delete pod "+s.Target, pod(Absent)) })
	}
	return errors.New("unknown step " + s.Name)
}

func inOrder(first error, then func() error) error {
	if first != nil {
		return first
	}
	return then()
}

func (m *Model) edit(name string, change func(*Member)) error {
	m.world = m.world.change(name, change)
	return nil
}

func (m *Model) list(seen World, name string) error {
	if seen.Revision != m.world.Revision {
		return errStale
	}
	first := m.world.count(listed) == 0
	m.world.Revision++
	m.world.Next++
	return m.edit(name, func(x *Member) { x.Listed, x.Voter = true, first })
}

// relist changes a member's entry in the list. Like a real quorum system, it rejects a
// change that would lose the quorum.
func (m *Model) relist(seen World, name string, to Member) error {
	if seen.Revision != m.world.Revision {
		return errStale
	}
	after := m.world.change(name, func(x *Member) { x.Listed, x.Voter = to.Listed, to.Voter })
	if after.missing() > m.world.missing() {
		return errors.New("the ring refuses: its quorum would be lost")
	}
	m.world = after
	m.world.Revision++
	return nil
}

// Tick implements sim.Model. Starting pods become healthy.
func (m *Model) Tick(_ time.Time, rng *rand.Rand) {
	for i := range m.world.Members {
		if m.world.Members[i].Pod == Starting && rng.IntN(3) == 0 {
			m.world.Members[i].Pod = Healthy
		}
	}
}

// Break implements sim.Model. It takes a pod down, for a while or for good, if the quorum
// survives that.
func (m *Model) Break(_ time.Time, rng *rand.Rand) string {
	if len(m.world.Members) == 0 {
		return ""
	}
	victim := m.world.Members[rng.IntN(len(m.world.Members))]
	to := []Health{Starting, Lost}[rng.IntN(2)]
	broken := m.world.change(victim.Name, func(x *Member) { x.Pod = to })
	if victim.Pod != Healthy || broken.missing() > 0 {
		return ""
	}
	m.world = broken
	return "pod of " + victim.Name + " is " + string(to)
}
