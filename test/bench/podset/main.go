// Command podset measures how fast a PodSet scales, compared with a ReplicaSet of the same
// pods on the same API server in the same run. The ratios hold on any machine, the seconds
// only on this one. Run it with `make bench-podset`.
//
// The ReplicaSet has Kubernetes' own controller, without its default rate limit: with it,
// Kubernetes would take half a minute for 500 pods. The kubelets are fakes for both kinds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are the command line options.
type options struct {
	size     int
	rounds   int
	patience time.Duration
	rest     time.Duration
	operator string
	crds     string
	out      string
}

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench-podset", flag.ContinueOnError)
	f.IntVar(&o.size, "size", 500, "pods to grow to, from 1")
	f.IntVar(&o.rounds, "rounds", 9, "how often; what counts is the median, and of the ratios the median of the rounds' ratios")
	f.DurationVar(&o.patience, "patience", 2*time.Minute, "how long anything may take to converge")
	f.DurationVar(&o.rest, "rest", 20*time.Second, "how long to watch the operator at rest with all pods")
	f.StringVar(&o.operator, "operator", "bin/governor", "the operator's binary")
	f.StringVar(&o.crds, "crds", "config/crd", "folder of the CRDs")
	f.StringVar(&o.out, "out", "build/bench-podset.json", "where to write the results")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.size < 2 || o.rounds < 1 {
		return o, errors.New("-size must be at least 2, -rounds at least 1")
	}
	return o, nil
}

func run(ctx context.Context, o options) (err error) {
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	s, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	r := results{Date: time.Now().UTC().Format(time.DateOnly), Size: o.size}
	for i := range o.rounds {
		// The order alternates, because the first one finds a different API server than
		// the second.
		order := slices.Clone(contenders)
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", i+1, o.rounds, c.kind())
			l, err := s.measure(ctx, c, o)
			if err != nil {
				return fmt.Errorf("%s: %w", c.kind(), err)
			}
			r.add(c, l)
		}
	}
	if r.Rest, err = s.idle(ctx, o); err != nil {
		return err
	}
	r.table(os.Stdout)
	return r.save(o.out)
}
