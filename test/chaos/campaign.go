package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// aloneShare is the share of the time for rounds that disturb shared components.
const aloneShare = 0.3

// statelessEvery is how many rounds there are for one with an application that keeps no data.
const statelessEvery = 6

// campaign plays random rounds until the deadline, and shortens failed ones.
func (a *arena) campaign(ctx context.Context) error {
	began := time.Now()
	shared, alone := a.all.Where(func(m chaos.Manipulation) bool { return !hurtsAll(m) }), a.all.Where(hurtsAll)
	a.say("seed %d: %d manipulations, %d of them alone, for %s in %d lanes", a.seed, len(a.all), len(alone), a.duration, a.lanes)
	var t tally
	seeds := atomic.Uint64{}
	seeds.Store(a.seed)
	if len(shared) > 0 {
		share := 1.0
		if len(alone) > 0 {
			share -= aloneShare
		}
		a.play(ctx, &t, &seeds, a.lanes, began.Add(time.Duration(share*float64(a.duration))), func(seed uint64) plan {
			if p, ok := a.plannedStateless(seed); ok && seed%statelessEvery == 0 {
				return p
			}
			return planned(seed, shared, shared)
		})
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

// replay plays the given compositions once: those that disturb shared components alone, and after the others.
func (a *arena) replay(ctx context.Context) error {
	plans, err := a.replays()
	if err != nil {
		return err
	}
	var t tally
	var lanes sync.WaitGroup
	free := make(chan struct{}, a.lanes)
	for _, p := range plans {
		if a.hurts(p.moves) {
			continue
		}
		free <- struct{}{}
		lanes.Go(func() { a.playAgain(ctx, &t, p); <-free })
	}
	lanes.Wait()
	for _, p := range plans {
		if a.hurts(p.moves) {
			a.playAgain(ctx, &t, p)
		}
	}
	if len(t.failures()) > 0 {
		return errViolated
	}
	return errors.Join(t.errs...)
}

// replays are the plans of -replay: compositions with semicolons between them, each after its layout and a
// colon, or with the layout of the flag.
func (a *arena) replays() (all []plan, err error) {
	for part := range strings.SplitSeq(a.again, ";") {
		text, moves, ok := strings.Cut(part, ":")
		if !ok {
			text, moves = a.config, part
		}
		l, err := parseLayout(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		parsed, err := chaos.Parse(moves, a.of(l))
		if err != nil {
			return nil, err
		}
		all = append(all, plan{seed: a.seed, layout: l, moves: parsed})
	}
	return all, nil
}

// hurts reports whether one of the moves disturbs what all rounds share.
func (a *arena) hurts(moves chaos.Composition) bool {
	return slices.ContainsFunc(moves, func(move chaos.Move) bool {
		m, ok := a.all.Named(move.Name)
		return ok && hurtsAll(m)
	})
}

func hurtsAll(m chaos.Manipulation) bool { return m.Verb == chaos.VerbMachine || m.HurtsOperator() }

func (a *arena) playAgain(ctx context.Context, t *tally, p plan) {
	r := a.carryOut(ctx, p)
	if t.add(r); r.err != nil {
		a.say("%s could not be carried out: %v", p, r.err)
	}
	for _, words := range r.told {
		a.say("            said meanwhile: %s", words)
	}
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

// command replays the composition, with the same other release: its image has its commit as the tag.
func (a *arena) command(l layout, c chaos.Composition) string {
	_, commit, _ := strings.Cut(a.other, ":")
	return fmt.Sprintf("make chaos LAYOUT=%s OTHER=%s REPLAY=%q", l, commit, c)
}
