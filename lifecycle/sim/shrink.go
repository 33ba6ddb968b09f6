package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/governor-dev/governor/lifecycle"
)

// faults are all kinds of bad weather, in the order in which the climate is drawn.
var faults = []Fault{Crash, LostAnswer, Conflict, APIError, Outage, StaleCache, LostWatch, Slow, Broken, Edited}

// Shrink returns the shortest life found that fails like the given one: with the same seed, fewer kinds of faults, and a
// shorter storm. The life that it returns tells which, in its Spared and Storm.
func Shrink[T lifecycle.Resource, W any](life Scenario[T, W], failed Outcome) (Scenario[T, W], Outcome) {
	best, worst := life, failed
	try := func(l Scenario[T, W]) {
		if out := Run(l, failed.Seed); out.Err != nil && alike(out.Err, failed.Err) && len(out.Transcript) <= len(worst.Transcript) {
			best, worst = l, out
		}
	}
	for _, f := range faults {
		l := best
		l.DisabledFaults = append(slices.Clone(best.DisabledFaults), f)
		try(l)
	}
	for _, storm := range []int{1, 2, 4, 8, 16, 32, 64, 128} {
		if l := best; storm < l.faultTicks() {
			l.FaultTicks = storm
			try(l)
		}
	}
	return best, worst
}

// alike reports whether two lives failed for the same reason: the words of the failure, without its numbers and names.
func alike(a, b error) bool { return kind(a) == kind(b) }

func kind(err error) string {
	_, what, _ := strings.Cut(err.Error(), ": ")
	what, _, _ = strings.Cut(what, " ")
	return what
}

// command is the environment in which the life is lived again.
func command[T lifecycle.Resource, W any](life Scenario[T, W], seed uint64) string {
	env := EnvSeed + "=" + strconv.FormatUint(seed, 10)
	if life.FaultTicks != 0 {
		env += " " + EnvStorm + "=" + strconv.Itoa(life.FaultTicks)
	}
	if len(life.DisabledFaults) > 0 {
		names := make([]string, len(life.DisabledFaults))
		for i, f := range life.DisabledFaults {
			names[i] = strings.ReplaceAll(string(f), " ", "-")
		}
		env += " " + EnvSpared + "=" + strings.Join(names, ",")
	}
	return env
}

// fromEnvironment returns the life with the storm that the environment says.
func fromEnvironment[T lifecycle.Resource, W any](life Scenario[T, W]) Scenario[T, W] {
	if n, ok := number(EnvStorm); ok {
		life.FaultTicks = int(n)
	}
	for _, name := range disabledFaults() {
		life.DisabledFaults = append(slices.Clone(life.DisabledFaults), Fault(strings.ReplaceAll(name, "-", " ")))
	}
	return life
}
