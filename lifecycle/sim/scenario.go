package sim

import (
	"math/rand/v2"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// Model is an application and its cluster, in memory.
type Model[T lifecycle.Resource, W any] interface {
	// Observe returns the true world as the driver would see it. The result must not
	// share memory with the model, because the simulator returns it later as a stale world.
	// The time is by the operator's clock, which may differ from that of Tick and Break.
	Observe(now time.Time) W

	// Provide applies resources as the engine does: only a difference is an effect.
	Provide(want T, resources []lifecycle.Object, fx *Effects) error

	// Act performs a step. Each contact with the world is an effect of its own. Like a
	// driver's Act it fails if the world has changed since seen.
	Act(want T, seen W, step lifecycle.Step, fx *Effects) error

	// Tick lets the application make progress until now: pods start, data is copied. A slow
	// application misses ticks.
	Tick(now time.Time, chance *rand.Rand)

	// Break causes a fault that the operator must handle, and describes it. The empty
	// string means that it caused none.
	Break(now time.Time, chance *rand.Rand) string
}

// Truthful is a model that knows more than a driver can see, such as which writes were
// acknowledged. Safe returns an error if a promise about that knowledge is broken.
type Truthful interface {
	Safe() error
}

// Mendable is a model with faults that no operator can repair, such as an exhausted quota
// or a missing image. Mend repairs them as a person would. The simulator calls it some
// time after the faults have stopped.
type Mendable interface {
	Mend()
}

// Scenario describes one application for the simulator.
type Scenario[T lifecycle.Resource, W any] struct {
	// Planner and Gates are the rules under test, the same as in production.
	Planner lifecycle.Planner[T, W]
	Gates   []lifecycle.Gate[T, W]

	// Hold returns the refusals of policies for the step; nil holds no step. It must be a
	// pure function of its arguments.
	Hold func(want T, step lifecycle.Step, now time.Time) []lifecycle.Refusal

	// ReportsDrift says that the drift policy is Report: see [lifecycle.Decision.Drift].
	ReportsDrift bool

	// Begin returns the initial object and model.
	Begin func(chance *rand.Rand) (T, Model[T, W])

	// Edit changes the spec as a user does. The simulator calls it at random while there are
	// faults; nil means that the user changes nothing.
	Edit func(want T, chance *rand.Rand)

	// Safe returns an error if the true world breaks an invariant.
	Safe func(seen W) error

	// Kept returns an error if a settled world is not what the object declares.
	Kept func(want T, seen W) error

	// FaultTicks is how many ticks (logical seconds) have faults; zero means 200.
	FaultTicks int

	// DisabledFaults are the faults that never happen; nil disables none.
	DisabledFaults []Fault

	// ConvergeTicks is how many ticks without faults the scenario has to converge; zero
	// means 200.
	ConvergeTicks int
}

// Outcome is the result of a run.
type Outcome struct {
	// Seed is the number that replays the run.
	Seed uint64
	// Ticks is the length of the run in logical seconds.
	Ticks int
	// Steps is how many steps the operator took.
	Steps int
	// Transcript describes the run, one event per line.
	Transcript []string
	// Err is nil, or why the run failed.
	Err error
}

func (l Scenario[T, W]) faultTicks() int    { return orDefault(l.FaultTicks) }
func (l Scenario[T, W]) convergeTicks() int { return orDefault(l.ConvergeTicks) }

func orDefault(ticks int) int {
	if ticks == 0 {
		return 200
	}
	return ticks
}
