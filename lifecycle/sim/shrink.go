package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/governor-dev/governor/lifecycle"
)

// faults are all kinds of faults, in the order in which a seed enables them.
var faults = []Fault{Crash, LostAnswer, Conflict, APIError, Outage, StaleCache, LostWatch, Slow, Broken, Edited, Clock, Refused}

// Shrink returns the shortest run found that fails like the given one: with the same seed, fewer kinds of faults, and
// fewer ticks with faults. The returned scenario has them in DisabledFaults and FaultTicks.
func Shrink[T lifecycle.Resource, W any](s Scenario[T, W], failed Outcome) (Scenario[T, W], Outcome) {
	best, worst := s, failed
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
	for _, ticks := range []int{1, 2, 4, 8, 16, 32, 64, 128} {
		if l := best; ticks < l.faultTicks() {
			l.FaultTicks = ticks
			try(l)
		}
	}
	return best, worst
}

// alike reports whether two runs failed for the same reason, by the first word of the failure.
func alike(a, b error) bool { return kind(a) == kind(b) }

func kind(err error) string {
	_, what, _ := strings.Cut(err.Error(), ": ")
	what, _, _ = strings.Cut(what, " ")
	return what
}

// command is the environment that replays the run.
func command[T lifecycle.Resource, W any](s Scenario[T, W], seed uint64) string {
	env := EnvSeed + "=" + strconv.FormatUint(seed, 10)
	if s.FaultTicks != 0 {
		env += " " + EnvFaultTicks + "=" + strconv.Itoa(s.FaultTicks)
	}
	if len(s.DisabledFaults) > 0 {
		names := make([]string, len(s.DisabledFaults))
		for i, f := range s.DisabledFaults {
			names[i] = strings.ReplaceAll(string(f), " ", "-")
		}
		env += " " + EnvDisabledFaults + "=" + strings.Join(names, ",")
	}
	return env
}

// fromEnvironment returns the scenario with the faults that the environment chooses.
func fromEnvironment[T lifecycle.Resource, W any](s Scenario[T, W]) Scenario[T, W] {
	if n, ok := number(EnvFaultTicks); ok {
		s.FaultTicks = int(n)
	}
	for _, name := range disabledFaults() {
		s.DisabledFaults = append(slices.Clone(s.DisabledFaults), Fault(strings.ReplaceAll(name, "-", " ")))
	}
	return s
}
