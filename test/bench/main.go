// Command bench measures the engine and the operator against a real API server. The same
// run measures plain client calls for the same objects: the ratios hold on any machine,
// the seconds only on this one. Run it with `make bench`.
//
// It fails only if something does not converge. A missed goal is marked in the table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are the command line options.
type options struct {
	counts   []int
	rounds   int
	rest     time.Duration
	patience time.Duration
	operator string
	crds     string
	out      string
	turns    bool
}

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		progress("%v", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	counts := f.String("counts", "10,100,1000", "fleets to measure, by number of objects")
	f.IntVar(&o.rounds, "rounds", 3, "number of rounds; the result is the median round by operator / plain one by one")
	f.DurationVar(&o.rest, "rest", 30*time.Second, "how long to measure the idle operator")
	f.DurationVar(&o.patience, "patience", 10*time.Minute, "timeout of each wait")
	f.StringVar(&o.operator, "operator", "bin/governor", "the operator's binary")
	f.StringVar(&o.crds, "crds", "config/crd", "folder of the CRDs")
	f.StringVar(&o.out, "out", "build/bench.json", "where to write the results")
	f.BoolVar(&o.turns, "turns", true, "also measure single reconciles of the engine")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds: %d is too few", o.rounds)
	}
	for word := range strings.SplitSeq(*counts, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return o, fmt.Errorf("-counts: %q is not a number of objects", word)
		}
		o.counts = append(o.counts, n)
	}
	return o, nil
}

// run measures everything and prints the result.
func run(ctx context.Context, o options, w io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	api, err := startAPI(o.crds)
	if err != nil {
		return err
	}
	defer api.stop()
	result := results{CPUs: runtime.NumCPU(), Go: runtime.Version(), RestSeconds: o.rest.Seconds()}
	if o.turns {
		if result.Reconciles, err = measureReconciles(ctx, api, o.patience); err != nil {
			return err
		}
	}
	if err := warmUp(ctx, api, o); err != nil {
		return err
	}
	for _, n := range o.counts {
		f, err := measureRounds(ctx, api, o, n)
		if err != nil {
			return fmt.Errorf("%d objects: %w", n, err)
		}
		result.Fleets = append(result.Fleets, f)
	}
	result.conclude()
	result.table(w)
	return result.save(o.out)
}

// warmUp sends the first requests of every kind before the measurements.
func warmUp(ctx context.Context, api *api, o options) error {
	progress("warming up")
	_, err := measurePlain(ctx, api, o, "warm-up", 20, workers)
	return err
}

// progress writes to stderr: stdout contains only the table.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
