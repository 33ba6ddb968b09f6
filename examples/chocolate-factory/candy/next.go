package candy

import (
	"fmt"
	"time"

	"github.com/governor-dev/governor/lifecycle"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/machine"
)

// The steps.
const (
	Order   = "Order"
	Make    = "MakeBar"
	Sense   = "Sense"
	Dispose = "Dispose"
	Deliver = "Deliver"
	Rest    = "Rest"
	Release = "Release"
)

// What is waited for.
const (
	machineAnswers = "MachineAnswers"
	turnComes      = "TurnComes"
	barReady       = "BarReady"
	sensorTrusted  = "SensorTrusted"
)

// SenseArgs are the arguments of Sense.
type SenseArgs struct {
	// Samples is how often the sensor tastes.
	Samples int `json:"samples"`
}

// Steps declares all that the rule book may decide on.
func Steps() []lifecycle.StepType {
	return []lifecycle.StepType{
		{Name: Order}, {Name: Make}, {Name: Sense, Args: SenseArgs{}}, {Name: Deliver}, {Name: Rest}, {Name: Release},
		{Name: Dispose, Class: lifecycle.ClassIrreversible},
		{Name: machineAnswers, Wait: true}, {Name: turnComes, Wait: true}, {Name: barReady, Wait: true}, {Name: sensorTrusted, Wait: true},
	}
}

const (
	// overdue is how long a bar may take.
	overdue = time.Minute
	// grace is how long a candy that is deleted waits for a machine that does not answer.
	grace = 30 * time.Second
	// again is how long a sensor that is off is left alone.
	again = 10 * time.Second
	// glance is how often a machine that is busy is asked.
	glance = time.Second
	// samples of the first measurement; the next ones take more.
	samples = 25
)

// Planner is the rule book of the factory.
type Planner struct{}

// Next is the rule book. Nothing is done in the dark, and nothing is thrown away on a guess.
func (Planner) Next(want *v1.Candy, seen World, now time.Time) lifecycle.Decision {
	if want.DeletionTimestamp != nil {
		return lifecycle.First(released(seen), abandoned(want, seen, now), release())
	}
	return lifecycle.First(
		delivered(want, seen),
		machineAway(seen),
		notOrdered(want, seen),
		tooManyBadBars(want, seen),
		notItsTurn(seen),
		noBar(seen),
		soft(seen, now),
		notTasted(seen),
		sensorOff(want, seen, now),
		unsure(want, seen),
		misfit(want, seen),
		fits(seen),
	)
}

func released(seen World) lifecycle.Decision {
	if !seen.Answers || seen.Job != nil {
		return lifecycle.Decision{}
	}
	return lifecycle.Settled("Released", "The machine has forgotten this candy.")
}

// abandoned releases a machine that does not answer: the machine forgets jobs without requests.
func abandoned(want *v1.Candy, seen World, now time.Time) lifecycle.Decision {
	if seen.Answers {
		return lifecycle.Decision{}
	}
	deadline := want.DeletionTimestamp.Add(grace)
	if now.Before(deadline) {
		return awaitMachine(glance).Until(deadline)
	}
	return lifecycle.Settled("MachineAbandoned", "The machine did not answer; it forgets this candy by itself.")
}

func release() lifecycle.Decision {
	return lifecycle.Proceed(lifecycle.Step{
		Name: Release, Class: lifecycle.ClassRoutine, Reason: "Deleted", Message: "The candy is deleted; the machine is for others.",
	})
}

// delivered by the status outlives the machine's memory.
func delivered(want *v1.Candy, seen World) lifecycle.Decision {
	told := want.Status.Delivered
	if told != nil && told.Flavor == want.Spec.Flavor {
		return lifecycle.Settled("Delivered", fmt.Sprintf("%s was delivered.", told.Bar))
	}
	if job := seen.Job; job != nil && job.Delivered != nil && job.Order.Sugar == want.Spec.Sugar() {
		return lifecycle.Settled("Delivered", fmt.Sprintf("%s was delivered.", job.Delivered.ID))
	}
	return lifecycle.Decision{}
}

func machineAway(seen World) lifecycle.Decision {
	if seen.Answers {
		return lifecycle.Decision{}
	}
	return awaitMachine(5 * glance)
}

func awaitMachine(beat time.Duration) lifecycle.Decision {
	return lifecycle.WaitFor(lifecycle.Step{
		Name: machineAnswers, Reason: "MachineAway",
		Message: "The machine does not answer, so nothing is known of the bar, and nothing is done to it.",
	}, time.Time{}).Heartbeat(beat)
}

// OrderOf is what the machine is asked to make for the candy.
func OrderOf(want *v1.Candy) machine.Order {
	return machine.Order{Number: want.Generation, Sugar: want.Spec.Sugar()}
}

func notOrdered(want *v1.Candy, seen World) lifecycle.Decision {
	order := OrderOf(want)
	if seen.Job != nil && seen.Job.Order == order {
		return lifecycle.Decision{}
	}
	if order.Sugar == 0 {
		return lifecycle.Block("UnknownFlavor", fmt.Sprintf("The flavor %q is unknown. Change spec.flavor.", want.Spec.Flavor))
	}
	return lifecycle.Proceed(lifecycle.Step{
		Name: Order, Class: lifecycle.ClassRoutine, Reason: "NotOrdered",
		Message: fmt.Sprintf("The machine is to be set to %d %s for %s.", order.Sugar, v1.Unit, want.Spec.Flavor),
	})
}

// tooManyBadBars: a candy that gives up releases the machine first.
func tooManyBadBars(want *v1.Candy, seen World) lifecycle.Decision {
	if seen.Job == nil || seen.Job.Disposed < max(1, want.Spec.Attempts) || seen.bar() != nil {
		return lifecycle.Decision{}
	}
	if seen.Job.Place != machine.Resting {
		return lifecycle.Proceed(lifecycle.Step{
			Name: Rest, Class: lifecycle.ClassRoutine, Reason: "TooManyBadBars", Message: "Others may have better luck with the machine.",
		})
	}
	return lifecycle.Block("TooManyBadBars", fmt.Sprintf(
		"All %d bars were too sweet or not sweet enough, the last with %d %s. See to the machine; raise spec.attempts to try again.",
		seen.Job.Disposed, measured(seen.Job.Binned), v1.Unit))
}

func measured(bar *machine.Bar) int {
	if bar == nil || bar.Measured == nil {
		return 0
	}
	return Median(bar.Measured.Samples)
}

func notItsTurn(seen World) lifecycle.Decision {
	if seen.Job == nil || seen.Job.Place == machine.Holding {
		return lifecycle.Decision{}
	}
	place := seen.Job.Place
	if place == machine.Resting {
		return lifecycle.Block("OutOfQueue", "The machine has put this candy aside. Change the spec to order again.")
	}
	return lifecycle.WaitFor(lifecycle.Step{
		Name: turnComes, Reason: "MachineBusy", Message: "Other candies have the machine.",
	}, time.Time{}).Heartbeat(min(time.Duration(place)*glance, again))
}

func noBar(seen World) lifecycle.Decision {
	if seen.bar() != nil {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(lifecycle.Step{
		Name: Make, Class: lifecycle.ClassRoutine, Reason: "NoBar", Message: "The machine is free and set; a bar is made.",
	})
}

func soft(seen World, now time.Time) lifecycle.Decision {
	bar := seen.bar()
	if bar == nil || bar.Ready {
		return lifecycle.Decision{}
	}
	wait := lifecycle.WaitFor(lifecycle.Step{
		Name: barReady, Target: bar.ID, Reason: "BarSoft", Message: fmt.Sprintf("%s is being made.", bar.ID),
	}, bar.Begun).Heartbeat(glance)
	deadline := bar.Begun.Add(overdue)
	switch {
	case bar.Begun.IsZero():
		return wait // in a preview: the start is unknown
	case now.Before(deadline):
		return wait.Until(deadline)
	}
	return lifecycle.Block("BarOverdue", fmt.Sprintf("%s is still not ready after %s. See to the machine.", bar.ID, overdue))
}

func notTasted(seen World) lifecycle.Decision {
	if bar := seen.bar(); bar != nil && bar.Measured == nil {
		return taste(bar, "NotTasted", "The sweetness of "+bar.ID+" is not known.")
	}
	return lifecycle.Decision{}
}

func taste(bar *machine.Bar, reason, message string) lifecycle.Decision {
	return lifecycle.Proceed(lifecycle.Step{
		Name: Sense, Target: bar.ID, Class: lifecycle.ClassRoutine, Reason: reason, Message: message,
	}.WithArgs(SenseArgs{samples * min(1+bar.Measurements, 2*persistent)}))
}

// sensorOff keeps a bar that cannot be judged, and tastes again later.
func sensorOff(want *v1.Candy, seen World, now time.Time) lifecycle.Decision {
	bar := seen.bar()
	if Judge(bar, want.Spec.Sugar()) != Untrusted {
		return lifecycle.Decision{}
	}
	if deadline := bar.Measured.At.Add(again); now.Before(deadline) {
		return lifecycle.WaitFor(lifecycle.Step{
			Name: sensorTrusted, Target: bar.ID, Reason: "SensorOff",
			Message: fmt.Sprintf("The sensor reads its reference of %d %s as %d, so it is not believed. Calibrate it; nothing is disposed of on a guess.",
				machine.Reference, v1.Unit, Median(bar.Measured.Reference)),
		}, bar.Measured.At).Until(deadline)
	}
	return taste(bar, "SensorOff", "The sensor may have been calibrated.")
}

func unsure(want *v1.Candy, seen World) lifecycle.Decision {
	bar := seen.bar()
	if Judge(bar, want.Spec.Sugar()) != Unsure {
		return lifecycle.Decision{}
	}
	return taste(bar, "Borderline", fmt.Sprintf("%s has %d %s, which is too close to the limit to be sure.", bar.ID, measured(bar), v1.Unit))
}

// misfit goes by what was measured, also of a bar that was made for another flavor: it may be what is wanted now.
func misfit(want *v1.Candy, seen World) lifecycle.Decision {
	bar := seen.bar()
	if Judge(bar, want.Spec.Sugar()) != Misfits {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(lifecycle.Step{
		Name: Dispose, Target: bar.ID, Class: lifecycle.ClassIrreversible, Reason: "OutOfTolerance",
		Message: fmt.Sprintf("%s has %d %s and should have %d, give or take %d.", bar.ID, measured(bar), v1.Unit, want.Spec.Sugar(), v1.Tolerance),
	})
}

func fits(seen World) lifecycle.Decision {
	bar := seen.bar()
	if bar == nil {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(lifecycle.Step{
		Name: Deliver, Target: bar.ID, Class: lifecycle.ClassRoutine, Reason: "WithinTolerance",
		Message: fmt.Sprintf("%s has %d %s, as it should.", bar.ID, measured(bar), v1.Unit),
	})
}
