// Package contract says what any candy does at any machine. The same suite runs on the model and on the real machine
// server under the real driver, so the model cannot lie.
package contract

import (
	"testing"

	"github.com/governor-dev/governor/lifecycle"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/machine"
)

// System is one candy and its machine under an operator.
type System interface {
	// Apply makes the candy what the edit makes of it.
	Apply(t *testing.T, edit func(*v1.CandySpec))
	// Fault makes the machine go wrong like this.
	Fault(t *testing.T, f machine.Faults)
	// Forget lets the machine lose its memory.
	Forget(t *testing.T)
	// Until waits until the candy tells the outcome and reason, and returns it.
	Until(t *testing.T, outcome lifecycle.Outcome, reason string) *v1.Candy
	// Delete deletes the candy and waits until the operator lets it go, for the reason.
	Delete(t *testing.T, reason string)
}

// Run runs the suite; each test gets a system of its own.
func Run(t *testing.T, fresh func(t *testing.T) System) {
	t.Helper()
	suite := map[string]func(*testing.T, System){
		"Delivers": delivers, "DisposesOfABadBatch": badBatch, "DoesNotBelieveADriftingSensor": drift,
		"KnowsNothingOfASilentMachine": silent, "StartsAnewAfterAPowerCut": powerCut, "OrdersAnew": ordersAnew,
		"Releases": releases, "DoesNotHangOnADeadMachine": dead,
	}
	for name, test := range suite {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

func sweet(spec *v1.CandySpec) { spec.Flavor, spec.Attempts = "sweeeeeeet", 3 }

func delivers(t *testing.T, s System) {
	s.Apply(t, sweet)
	c := s.Until(t, lifecycle.OutcomeSettled, "Delivered").Status
	if c.Sweetness == nil || c.Sweetness.Value < 630 || c.Sweetness.Value > 650 || c.Sweetness.Samples < 25 ||
		c.Sweetness.Unit != "mg/g" || c.Sweetness.Time.IsZero() {
		t.Errorf("sweetness is %+v, want about 640 mg/g of 25 samples or more", c.Sweetness)
	}
	if c.Disposed || c.Bars != (v1.Bars{Made: 1}) || c.Delivered == nil || c.Delivered.Flavor != "sweeeeeeet" {
		t.Errorf("status is %+v", c)
	}
}

func badBatch(t *testing.T, s System) {
	s.Fault(t, machine.Faults{WrongBatch: 60})
	s.Apply(t, sweet)
	c := s.Until(t, lifecycle.OutcomeBlocked, "TooManyBadBars").Status
	if c.Bars != (v1.Bars{Made: 3, Disposed: 3}) || !c.Disposed || c.Sweetness.Value < 690 {
		t.Errorf("status is %+v", c)
	}
	s.Fault(t, machine.Faults{})
	s.Apply(t, func(spec *v1.CandySpec) { spec.Attempts = 4 })
	s.Until(t, lifecycle.OutcomeSettled, "Delivered")
}

func drift(t *testing.T, s System) {
	s.Fault(t, machine.Faults{Drift: -90})
	s.Apply(t, sweet)
	if c := s.Until(t, lifecycle.OutcomeWait, "SensorOff").Status; c.Bars.Disposed != 0 || c.Disposed {
		t.Errorf("disposed of on a guess: %+v", c)
	}
	s.Fault(t, machine.Faults{})
	if c := s.Until(t, lifecycle.OutcomeSettled, "Delivered").Status; c.Bars != (v1.Bars{Made: 1}) {
		t.Errorf("the bar was good all the time: %+v", c)
	}
}

func silent(t *testing.T, s System) {
	s.Apply(t, sweet)
	s.Until(t, lifecycle.OutcomeWait, "BarSoft")
	s.Fault(t, machine.Faults{Down: true})
	s.Until(t, lifecycle.OutcomeWait, "MachineAway")
	s.Fault(t, machine.Faults{})
	if c := s.Until(t, lifecycle.OutcomeSettled, "Delivered").Status; c.Bars != (v1.Bars{Made: 1}) {
		t.Errorf("the bar waited: %+v", c)
	}
}

func powerCut(t *testing.T, s System) {
	s.Apply(t, sweet)
	s.Until(t, lifecycle.OutcomeWait, "BarSoft")
	s.Forget(t)
	s.Until(t, lifecycle.OutcomeSettled, "Delivered")
	s.Forget(t)
	s.Until(t, lifecycle.OutcomeSettled, "Delivered") // for good
}

func ordersAnew(t *testing.T, s System) {
	s.Apply(t, sweet)
	s.Until(t, lifecycle.OutcomeWait, "BarSoft")
	s.Apply(t, func(spec *v1.CandySpec) { spec.Flavor = "bitter" })
	c := s.Until(t, lifecycle.OutcomeSettled, "Delivered").Status
	if c.Delivered.Flavor != "bitter" || c.Bars.Disposed != 1 {
		t.Errorf("status is %+v", c)
	}
}

func releases(t *testing.T, s System) {
	s.Apply(t, sweet)
	s.Until(t, lifecycle.OutcomeWait, "BarSoft")
	s.Delete(t, "Released")
}

func dead(t *testing.T, s System) {
	s.Apply(t, sweet)
	s.Until(t, lifecycle.OutcomeWait, "BarSoft")
	s.Fault(t, machine.Faults{Down: true})
	s.Delete(t, "MachineAbandoned")
}
