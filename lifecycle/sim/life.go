package sim

import (
	"math/rand/v2"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// Model is an application and its cluster, in memory.
type Model[T lifecycle.Resource, W any] interface {
	// Observe returns the true world as the driver would see it. The result must
	// not share memory with the model: it is kept and shown again as stale.
	Observe(now time.Time) W

	// Provide applies resources the way the engine does: only what differs is an
	// effect.
	Provide(want T, resources []lifecycle.Object, fx *Effects) error

	// Act performs a step, each contact with the world as an effect of its own.
	// Like a driver's Act it fails if the world moved since seen.
	Act(want T, seen W, step lifecycle.Step, fx *Effects) error

	// Tick lets the application go on by itself until now: pods start, data is
	// copied. A slow application misses ticks.
	Tick(now time.Time, chance *rand.Rand)

	// Break lets something go wrong that the operator must deal with, and says
	// what. The empty string means that nothing was broken.
	Break(now time.Time, chance *rand.Rand) string
}

// Truthful is a model that knows more than any driver could see, such as which
// writes were acknowledged. Safe returns an error if that truth was violated.
type Truthful interface {
	Safe() error
}

// Mendable is a model in which things go wrong that no operator can put right: a quota
// that is spent, an image that is not there. Mend puts them right, as a person would:
// the simulator asks for it some time after the faults have stopped.
type Mendable interface {
	Mend()
}

// Scenario describes one application for the simulator.
type Scenario[T lifecycle.Resource, W any] struct {
	// Planner and Gates are the rules under test, the same as in production.
	Planner lifecycle.Planner[T, W]
	Gates   []lifecycle.Gate[W]

	// Hold returns why somebody holds the step for now, as policies do; nil holds none.
	// What it says must depend on nothing but its arguments.
	Hold func(want T, step lifecycle.Step, now time.Time) []lifecycle.Refusal

	// Begin returns the object and the model at the beginning.
	Begin func(chance *rand.Rand) (T, Model[T, W])

	// Edit changes what the user wants. It is called now and then while there are
	// faults; nil means that the user never changes anything.
	Edit func(want T, chance *rand.Rand)

	// Safe returns an error if the true world breaks what must always hold.
	Safe func(seen W) error

	// Kept returns an error if, at rest, the world is not what was wanted.
	Kept func(want T, seen W) error

	// FaultTicks is how many ticks (logical seconds) have faults; zero means 200.
	FaultTicks int

	// DisabledFaults are faults that never happen; nil means that everything may.
	DisabledFaults []Fault

	// ConvergeTicks is how many ticks without faults the life has to converge; zero
	// means 200.
	ConvergeTicks int
}

// Outcome is what came of a life.
type Outcome struct {
	// Seed is the number that lives it again.
	Seed uint64
	// Ticks is how long it lasted in logical seconds.
	Ticks int
	// Steps is how many steps were taken.
	Steps int
	// Transcript tells it line by line.
	Transcript []string
	// Err is nil, or why the life failed.
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
