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

// Environment variables that choose which lives are lived.
const (
	// EnvSeed lives exactly one life, the one with this seed.
	EnvSeed = "GOVERNOR_SIM_SEED"
	// EnvLives is how many lives are lived, with the seeds from 1.
	EnvLives = "GOVERNOR_SIM_LIVES"
	// EnvStorm and EnvSpared are the storm of the life with the seed, and the faults, with commas between them, that it
	// is spared: a failed life is shrunk, and says what to set.
	EnvStorm  = "GOVERNOR_SIM_STORM"
	EnvSpared = "GOVERNOR_SIM_SPARED"
)

// T is the part of testing.TB that Lives needs.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// RunSeeds lives count lives with the seeds from 1, and fails the test with the
// transcript of the shortest failing life, shrunk to what it takes to fail. The
// environment overrides what is lived.
func RunSeeds[O lifecycle.Resource, W any](t T, life Scenario[O, W], count int) {
	t.Helper()
	if seed, ok := number(EnvSeed); ok {
		life = fromEnvironment(life)
		report(t, life, Run(life, seed))
		return
	}
	lives := uint64(max(0, count))
	if n, ok := number(EnvLives); ok {
		lives = n
	}
	if worst, ok := shortestFailure(life, lives); ok {
		life, worst = Shrink(life, worst)
		report(t, life, worst)
	}
}

// shortestFailure lives on all processors: a life depends on nothing but its seed.
func shortestFailure[O lifecycle.Resource, W any](life Scenario[O, W], count uint64) (Outcome, bool) {
	var (
		worst Outcome
		mu    sync.Mutex
		born  atomic.Uint64
		all   sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed := born.Add(1); seed <= count; seed = born.Add(1) {
				out := Run(life, seed)
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

func report[O lifecycle.Resource, W any](t T, life Scenario[O, W], out Outcome) {
	t.Helper()
	t.Logf("the life of seed %d:\n%s", out.Seed, strings.Join(out.Transcript, "\n"))
	if out.Err != nil {
		t.Fatalf("%v\nlive it again with %s", out.Err, command(life, out.Seed))
	}
}

func disabledFaults() []string {
	return strings.FieldsFunc(os.Getenv(EnvSpared), func(r rune) bool { return r == ',' })
}

func number(name string) (uint64, bool) {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	return n, err == nil
}
