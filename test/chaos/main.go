// Command chaos is the adversary: it applies manipulations by users, administrators, controllers
// and machines to a real cluster, chosen from the catalogue by a seed. An oracle that is independent
// of the operator checks the result. Run it with `make chaos`.
//
// It needs a localkube cluster with the operator installed, and disturbs it. A failed round is
// repeated, shortened, and printed with its replay command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	etcdchaos "github.com/governor-dev/governor/apps/etcd/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// options are the options of a run.
type options struct {
	duration  time.Duration
	shrink    time.Duration
	seed      uint64
	lanes     int
	heal      time.Duration
	rest      time.Duration
	again     string
	config    string
	only      string
	other     string
	localkube []string
}

var errViolated = errors.New("a promise was violated")

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
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	seconds := f.Int("seconds", 600, "how long to begin rounds")
	seed := f.String("seed", "random", "number from which all rounds follow, or random")
	localkube := f.String("localkube", "", "command of the cluster, such as \"bin/localkube --name governor\"; without it nothing is done to machines")
	f.DurationVar(&o.shrink, "shrink", 5*time.Minute, "how long to shorten what fails, at most")
	f.IntVar(&o.lanes, "lanes", 4, "rounds at once; what is done to machines runs alone")
	f.DurationVar(&o.heal, "heal", 3*time.Minute, "how long a cluster has to heal after the adversary stops")
	f.DurationVar(&o.rest, "rest", 20*time.Second, "how long the operator must write nothing once the cluster has healed")
	f.StringVar(&o.again, "replay", "", "composition to run instead of random ones, such as \"pod-kill@1+2s pod-evict@0\"")
	f.StringVar(&o.config, "layout", "3-tls", "instance of a replay: its size and features, such as 3-tls, 5-plain-memory-freeze or 3-memcached")
	f.StringVar(&o.only, "only", "", "choose only manipulations whose names have one of these parts, with commas between them")
	f.StringVar(&o.other, "other-release", "", "image of another release of the operator, which a round may install for a while")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.duration, o.localkube = time.Duration(*seconds)*time.Second, strings.Fields(*localkube)
	if *seed == "random" {
		o.seed = rand.Uint64() >> 32
		return o, nil
	}
	var err error
	if o.seed, err = strconv.ParseUint(*seed, 10, 64); err != nil {
		return o, fmt.Errorf("-seed: %q is neither a number nor random", *seed)
	}
	return o, nil
}

// catalogue contains the manipulations of the run.
func (o options) catalogue() chaos.Catalogue {
	all := etcdchaos.Catalogue()
	if len(o.localkube) == 0 {
		all = all.Where(func(m chaos.Manipulation) bool { return m.Verb != chaos.VerbMachine })
	}
	if o.other == "" {
		all = all.Where(func(m chaos.Manipulation) bool { return m.Detail != chaos.MachineOther })
	}
	return o.chosen(all)
}

// chosen are the manipulations that the user asks for.
func (o options) chosen(all chaos.Catalogue) chaos.Catalogue {
	if o.only == "" {
		return all
	}
	return all.Where(func(m chaos.Manipulation) bool {
		for part := range strings.SplitSeq(o.only, ",") {
			if strings.Contains(m.Name, part) {
				return true
			}
		}
		return false
	})
}

func run(ctx context.Context, o options) error {
	a, err := open(o)
	if err != nil {
		return err
	}
	if err := a.ready(ctx); err != nil {
		return err
	}
	if len(o.localkube) > 0 {
		remove, err := a.interpose(ctx)
		if remove != nil {
			defer remove()
		}
		if err != nil {
			return err
		}
	}
	if o.again != "" {
		return a.replay(ctx)
	}
	return a.campaign(ctx)
}
