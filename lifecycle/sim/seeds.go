package sim

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/governor-dev/governor/lifecycle"
)

// Environment variables that choose what RunSeeds runs.
const (
	// EnvSeed is the one seed to run.
	EnvSeed = "GOVERNOR_SIM_SEED"
	// EnvRuns is the number of runs, with the seeds from 1.
	EnvRuns = "GOVERNOR_SIM_RUNS"
	// EnvFaultTicks and EnvDisabledFaults are Scenario.FaultTicks and Scenario.DisabledFaults (separated by commas)
	// of the run with EnvSeed. A failed run is shrunk, and its report says which values to set.
	EnvFaultTicks     = "GOVERNOR_SIM_FAULT_TICKS"
	EnvDisabledFaults = "GOVERNOR_SIM_DISABLED_FAULTS"
)

// T is the part of testing.TB that RunSeeds needs.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// RunSeeds runs the scenario with the seeds from 1 to count. It fails the test with the
// transcript of the shortest failing run, after shrinking it. Environment variables
// override the seeds and the faults.
func RunSeeds[O lifecycle.Resource, W any](t T, s Scenario[O, W], count int) {
	t.Helper()
	if seed, ok := number(EnvSeed); ok {
		s = fromEnvironment(s)
		report(t, s, Run(s, seed))
		return
	}
	runs := uint64(max(0, count))
	if n, ok := number(EnvRuns); ok {
		runs = n
	}
	if worst, ok := shortestFailure(s, runs); ok {
		s, worst = Shrink(s, worst)
		report(t, s, worst)
	}
}

// shortestFailure uses all processors: a run depends on nothing but its seed.
func shortestFailure[O lifecycle.Resource, W any](s Scenario[O, W], count uint64) (Outcome, bool) {
	var (
		worst Outcome
		mu    sync.Mutex
		begun atomic.Uint64
		all   sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed := begun.Add(1); seed <= count; seed = begun.Add(1) {
				out := Run(s, seed)
				mu.Lock()
				if out.Err != nil && (worst.Err == nil || shorter(out, worst)) {
					worst = out
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return worst, worst.Err != nil
}

func shorter(a, b Outcome) bool {
	return len(a.Transcript) < len(b.Transcript) || len(a.Transcript) == len(b.Transcript) && a.Seed < b.Seed
}

func report[O lifecycle.Resource, W any](t T, s Scenario[O, W], out Outcome) {
	t.Helper()
	t.Logf("run with seed %d:\n%s", out.Seed, strings.Join(out.Transcript, "\n"))
	if out.Err != nil {
		t.Fatalf("%v\nreplay it with %s", out.Err, command(s, out.Seed))
	}
}

func disabledFaults() []string {
	return strings.FieldsFunc(os.Getenv(EnvDisabledFaults), func(r rune) bool { return r == ',' })
}

func number(name string) (uint64, bool) {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	return n, err == nil
}
