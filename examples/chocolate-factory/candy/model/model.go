// Package model is a machine and its queue in memory, for the simulator and for tests. The machine is the real one
// without HTTP; the contract suite holds it to what the driver sees.
package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/candy"
	"awesome.corp.com/chocolate-factory/machine"
)

// ours and rival are jobs on the machine.
const ours, rival = "ours", "rival"

// Model is one candy's machine. It implements sim.Model and sim.Truthful.
type Model struct {
	Machine *machine.Machine
	now     time.Time
	rivals  time.Time // until when another candy has the machine
	calm    int
}

// New returns a machine that is at rest.
func New(chance *rand.Rand) *Model { return &Model{Machine: machine.New(chance)} }

var errSilent = errors.New("the machine does not answer")

// Observe implements sim.Model.
func (m *Model) Observe(now time.Time) candy.World {
	if m.now.IsZero() {
		m.now = now // later times are the machine's own
	}
	if m.Machine.Faults.Down {
		return candy.World{}
	}
	job, err := m.Machine.Get(m.now, ours)
	if err != nil {
		return candy.World{Answers: true}
	}
	return candy.World{Answers: true, Job: &job}
}

// Provide implements sim.Model: nothing of a candy is in Kubernetes.
func (m *Model) Provide(*v1.Candy, []lifecycle.Object, *sim.Effects) error { return nil }

// Act implements sim.Model: each step is one call.
func (m *Model) Act(want *v1.Candy, _ candy.World, s lifecycle.Step, fx *sim.Effects) error {
	return fx.Do(s.String(), func() error {
		if m.Machine.Faults.Down {
			return errSilent
		}
		return m.perform(want, s)
	})
}

func (m *Model) perform(want *v1.Candy, s lifecycle.Step) (err error) {
	switch s.Name {
	case candy.Order:
		m.Machine.Put(m.now, ours, candy.OrderOf(want))
	case candy.Make:
		_, err = m.Machine.Make(m.now, ours)
	case candy.Sense:
		var args candy.SenseArgs
		if args, err = lifecycle.ArgsOf[candy.SenseArgs](s); err == nil {
			_, err = m.Machine.Sense(m.now, ours, s.Target, args.Samples)
		}
	case candy.Dispose:
		_, err = m.Machine.Dispose(m.now, ours, s.Target)
	case candy.Deliver:
		_, err = m.Machine.Deliver(m.now, ours, s.Target)
	case candy.Rest:
		_, err = m.Machine.Rest(m.now, ours)
	case candy.Release:
		m.Machine.Drop(ours)
	default:
		err = fmt.Errorf("there is no step %q", s.Name)
	}
	return err
}

// Tick implements sim.Model: time passes at the machine, and others let it go. After a minute in which nothing went
// wrong a person has repaired it.
func (m *Model) Tick(now time.Time, _ *rand.Rand) {
	m.now = now
	if m.calm++; m.calm > 60 {
		m.Machine.Faults = machine.Faults{}
	}
	if !m.rivals.IsZero() && now.After(m.rivals) {
		m.Machine.Drop(rival)
		m.rivals = time.Time{}
	}
}

// Break implements sim.Model.
func (m *Model) Break(now time.Time, chance *rand.Rand) string {
	m.calm = 0
	f := &m.Machine.Faults
	off := (40 + chance.IntN(100)) * (1 - 2*chance.IntN(2))
	switch chance.IntN(8) {
	case 0:
		f.Down = !f.Down
		return fmt.Sprintf("the machine is down: %v", f.Down)
	case 1:
		f.Slow = 1000 * chance.IntN(20)
		return fmt.Sprintf("a bar takes %d ms longer", f.Slow)
	case 2:
		f.Drift = off
		return fmt.Sprintf("the sensor is %d off", off)
	case 3, 4:
		f.WrongBatch = off
		return fmt.Sprintf("the batch has %d too much", off)
	case 5:
		m.Machine.Forget()
		return "the machine has forgotten everything"
	case 6:
		m.rivals = now.Add(time.Duration(chance.IntN(30)) * time.Second)
		m.Machine.Put(now, rival, machine.Order{Number: 1, Sugar: 100})
		return "another candy wants the machine"
	}
	*f = machine.Faults{}
	return "the machine is mended"
}

// slack is how near to the limit a bar may be misjudged, in mg/g.
const slack = 10

// Safe implements sim.Truthful: only the machine knows how much sugar is in a bar.
func (m *Model) Safe() error {
	for _, f := range m.Machine.Fates() {
		off := max(f.Truth-f.Wanted, f.Wanted-f.Truth)
		if f.Disposed && off < v1.Tolerance-slack {
			return fmt.Errorf("a good bar was thrown away: it had %d, and %d were wanted", f.Truth, f.Wanted)
		}
		if !f.Disposed && off > v1.Tolerance+slack {
			return fmt.Errorf("a bad bar was delivered: it had %d, and %d were wanted", f.Truth, f.Wanted)
		}
	}
	return nil
}
