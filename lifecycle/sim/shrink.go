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
func Shrink[T lifecycle.Custom, W any](life Life[T, W], failed Outcome) (Life[T, W], Outcome) {
	best, worst := life, failed
	try := func(l Life[T, W]) {
		if out := Run(l, failed.Seed); out.Err != nil && alike(out.Err, failed.Err) && len(out.Transcript) <= len(worst.Transcript) {
			best, worst = l, out
		}
	}
	for _, f := range faults {
		l := best
		l.Spared = append(slices.Clone(best.Spared), f)
		try(l)
	}
	for _, storm := range []int{1, 2, 4, 8, 16, 32, 64, 128} {
		if l := best; storm < l.storm() {
			l.Storm = storm
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
func command[T lifecycle.Custom, W any](life Life[T, W], seed uint64) string {
	env := EnvSeed + "=" + strconv.FormatUint(seed, 10)
	if life.Storm != 0 {
		env += " " + EnvStorm + "=" + strconv.Itoa(life.Storm)
	}
	if len(life.Spared) > 0 {
		names := make([]string, len(life.Spared))
		for i, f := range life.Spared {
			names[i] = strings.ReplaceAll(string(f), " ", "-")
		}
		env += " " + EnvSpared + "=" + strings.Join(names, ",")
	}
	return env
}

// fromEnvironment returns the life with the storm that the environment says.
func fromEnvironment[T lifecycle.Custom, W any](life Life[T, W]) Life[T, W] {
	if n, ok := number(EnvStorm); ok {
		life.Storm = int(n)
	}
	for _, name := range spared() {
		life.Spared = append(slices.Clone(life.Spared), Fault(strings.ReplaceAll(name, "-", " ")))
	}
	return life
}
