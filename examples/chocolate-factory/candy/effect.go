package candy

import (
	"slices"

	"github.com/governor-dev/governor/lifecycle"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/machine"
)

// Effect says what a step or a wait does: bars turn out well, because a bad bar cannot be predicted.
func (Planner) Effect(want *v1.Candy, seen World, s lifecycle.Step) (during, after World) {
	switch s.Name {
	case Order:
		return seen, seen.with(func(j *machine.Job) { ordered(j, OrderOf(want)) })
	case Release:
		after = seen
		after.Job = nil
		return after, after
	case machineAnswers:
		after = seen
		after.Answers = true
		return seen, after
	case turnComes:
		return seen, seen.with(func(j *machine.Job) { j.Place = machine.Holding })
	case Rest:
		return seen, seen.with(func(j *machine.Job) { j.Place, j.Bar = machine.Resting, nil })
	case Make:
		return seen, seen.with(func(j *machine.Job) {
			j.Made++
			j.Bar = &machine.Bar{ID: "bar", Setting: j.Order.Sugar}
		})
	case Dispose:
		during = seen.with(func(j *machine.Job) { j.Bar = nil })
		during.Binning = seen.bar()
		return during, seen.with(func(j *machine.Job) { j.Binned, j.Bar = j.Bar, nil; j.Disposed++ })
	case Deliver:
		return seen, seen.with(func(j *machine.Job) { j.Delivered, j.Bar, j.Place = j.Bar, nil, machine.Resting })
	}
	return seen, seen.with(func(j *machine.Job) { progress(j, s) })
}

// ordered is the job with its new order. Whether others have the machine is not known before it is asked.
func ordered(j *machine.Job, order machine.Order) {
	if j.Order.Number != order.Number {
		j.Made, j.Disposed, j.Delivered, j.Binned = 0, 0, nil, nil
	}
	j.Order = order
	j.Place = max(j.Place, machine.Holding)
}

// progress is that of a bar on the belt: it hardens, or is found to be as it should.
func progress(j *machine.Job, s lifecycle.Step) {
	if j.Bar == nil {
		return
	}
	bar := *j.Bar
	j.Bar = &bar
	switch s.Name {
	case barReady:
		bar.Ready = true
	case Sense, sensorTrusted:
		bar.Measurements++
		bar.Measured = &machine.Measurement{
			Samples: slices.Repeat([]int{bar.Setting}, samples), Reference: slices.Repeat([]int{machine.Reference}, samples),
		}
	}
}

// Gates are the promises that every step keeps.
func Gates() []lifecycle.Gate[*v1.Candy, World] {
	return []lifecycle.Gate[*v1.Candy, World]{ThrowsNothingAwayOnAGuess}
}

// ThrowsNothingAwayOnAGuess promises that a bar is disposed of only if it was measured, by a sensor that is trusted, to
// be out of tolerance.
var ThrowsNothingAwayOnAGuess = lifecycle.Gate[*v1.Candy, World]{
	Name: "ThrowsNothingAwayOnAGuess",
	Violation: func(want *v1.Candy, w World) int {
		if w.Binning == nil || Judge(w.Binning, want.Spec.Sugar()) == Misfits {
			return 0
		}
		return 1
	},
	Message: func(want *v1.Candy, before, _ World, _ lifecycle.Step) string {
		return "what is known of the bar is: " + string(Judge(before.bar(), want.Spec.Sugar())) + ". It passes when the bar was measured to be out of tolerance."
	},
}
