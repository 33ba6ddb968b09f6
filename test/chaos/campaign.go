package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// aloneShare is the share of the time for rounds that disturb shared components.
const aloneShare = 0.3

// campaign plays random rounds until the deadline, and shortens failed ones.
func (a *arena) campaign(ctx context.Context) error {
	began := time.Now()
	hurts := func(m chaos.Manipulation) bool {
		return m.Verb == chaos.VerbMachine || m.Object.Scope == chaos.ScopeOperator
	}
	shared, alone := a.all.Where(func(m chaos.Manipulation) bool { return !hurts(m) }), a.all.Where(hurts)
	a.say("seed %d: %d manipulations, %d of them alone, for %s in %d lanes", a.seed, len(a.all), len(alone), a.duration, a.lanes)
	var t tally
	seeds := atomic.Uint64{}
	seeds.Store(a.seed)
	if len(shared) > 0 {
		share := 1.0
		if len(alone) > 0 {
			share -= aloneShare
		}
		a.play(ctx, &t, &seeds, a.lanes, began.Add(time.Duration(share*float64(a.duration))), func(seed uint64) plan { return planned(seed, shared, shared) })
	}
	if len(alone) > 0 {
		a.play(ctx, &t, &seeds, 1, began.Add(a.duration), func(seed uint64) plan { return planned(seed, alone, a.all) })
	}
	err := a.shorten(ctx, &t)
	t.report(a.out)
	return err
}

// play plays rounds in lanes until the deadline: no round begins after it.
func (a *arena) play(ctx context.Context, t *tally, seeds *atomic.Uint64, lanes int, until time.Time, next func(uint64) plan) {
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() {
			for time.Now().Before(until) && ctx.Err() == nil {
				r := a.carryOut(ctx, next(seeds.Add(1)))
				if ctx.Err() != nil {
					return // an interrupted round has no result
				}
				if t.add(r); lanes == 1 {
					t.disorder(a.ready(ctx))
				}
			}
		})
	}
	all.Wait()
}

// replay plays the given composition once.
func (a *arena) replay(ctx context.Context) error {
	moves, err := chaos.Parse(a.again, a.all)
	if err != nil {
		return err
	}
	l, err := parseLayout(a.config)
	if err != nil {
		return err
	}
	r := a.carryOut(ctx, plan{seed: a.seed, layout: l, moves: moves})
	if r.err != nil {
		return r.err
	}
	for _, words := range r.told {
		a.say("said meanwhile: %s", words)
	}
	if r.failed() {
		return errViolated
	}
	return nil
}

// shorten prints the shortest failing form of each failed round, and its replay command.
func (a *arena) shorten(ctx context.Context, t *tally) error {
	until := time.Now().Add(a.shrink)
	for _, r := range t.failures() {
		again, fails := 0, func(c chaos.Composition) bool {
			return a.carryOut(ctx, plan{seed: r.seed, layout: r.layout, moves: c}).failed()
		}
		shortest := chaos.Shrink(r.moves, func(c chaos.Composition) bool {
			if time.Now().After(until) || ctx.Err() != nil {
				return false
			}
			again++
			a.say("%-11d %-7s shortening: %s", r.seed, r.layout, c)
			return fails(c)
		})
		repeats := "it was not repeated: the time is over"
		if time.Now().Before(until) && ctx.Err() == nil {
			repeats = map[bool]string{true: "it fails again", false: "it does not fail again: it depends on time or on other rounds"}[fails(shortest)]
		}
		a.say("\nVIOLATED by seed %d (%d shorter ones tried):\n            %s\n  replay: %s\n  repeated once: %s",
			r.seed, again, joined(r.violations), a.command(r.layout, shortest), repeats)
	}
	if len(t.failures()) > 0 {
		return errViolated
	}
	return errors.Join(t.errs...)
}

func (a *arena) command(l layout, c chaos.Composition) string {
	return fmt.Sprintf("make chaos LAYOUT=%s REPLAY=%q", l, c)
}
