// Command etcd measures Governor's etcd on a real cluster. The same run measures a plain
// StatefulSet of the same pods with a static bootstrap: the ratios hold on any machine,
// the seconds only on this one. Run it with `make bench-etcd`.
//
// It fails only if something does not converge or an acknowledged write is lost. A missed
// goal is marked in the table.
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
	sizes    []int
	rounds   int
	fleet    int
	quiet    time.Duration
	rest     time.Duration
	patience time.Duration
	out      string
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
	f := flag.NewFlagSet("bench-etcd", flag.ContinueOnError)
	sizes := f.String("sizes", "1,3,5,7", "clusters to create, by number of members; empty for none")
	f.IntVar(&o.rounds, "rounds", 3, "how often to create and to break; what counts is the median")
	f.IntVar(&o.fleet, "fleet", 20, "how many clusters of three to have at once; 0 for none")
	f.DurationVar(&o.quiet, "quiet", 30*time.Second, "how long to leave the fleet in peace before it counts as at rest")
	f.DurationVar(&o.rest, "rest", time.Minute, "how long to watch the operator at rest")
	f.DurationVar(&o.patience, "patience", 5*time.Minute, "how long anything may take to converge")
	f.StringVar(&o.out, "out", "build/bench-etcd.json", "where to write the results")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	for word := range strings.FieldsFuncSeq(*sizes, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return o, fmt.Errorf("-sizes: %q is not a number of members", word)
		}
		o.sizes = append(o.sizes, n)
	}
	return o, nil
}

// run measures everything and prints the result.
func run(ctx context.Context, o options, w io.Writer) (err error) {
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := open(ctx, o.patience)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	r := results{Date: time.Now().UTC().Format(time.DateOnly), CPUs: runtime.NumCPU(), Load: loadAverage(), Rounds: o.rounds}
	if err := r.measure(ctx, s, o); err != nil {
		return err
	}
	r.conclude()
	r.table(w)
	return r.save(o.out)
}

func (r *results) measure(ctx context.Context, s *testEnv, o options) (err error) {
	if o.rounds > 0 {
		if r.Creations, err = measureCreations(ctx, s, o); err != nil {
			return err
		}
		if r.Wounds, err = measureRecoveries(ctx, s, o); err != nil {
			return err
		}
	}
	if o.fleet > 0 {
		r.Fleet, err = measureFleet(ctx, s, o)
	}
	return err
}

// loadAverage returns the load of the machine in the last minute: other processes may use
// it too.
func loadAverage() float64 {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(raw), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// progress writes to stderr: stdout contains only the table.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
