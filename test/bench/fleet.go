package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
)

// fleet is what was measured with one number of objects: the round in the middle.
type fleet struct {
	Objects int `json:"objects"`
	// Rounds are the ratios to plain calls one by one of all rounds, the least first.
	Rounds     []float64 `json:"createRatiosSequential"`
	Sequential plain     `json:"plainSequential"`
	Parallel   plain     `json:"plainParallel"`
	Create     phase     `json:"create"`
	Rest       calm      `json:"rest"`
	Change     phase     `json:"change"`

	// The operator's time by that of the plain calls, and all work by all work.
	CreateRatio           float64 `json:"createRatio"`
	CreateRatioSequential float64 `json:"createRatioSequential"`
	CreateRatioChildren   float64 `json:"createRatioChildrenOnly"`
	CreateWorkRatio       float64 `json:"createWorkRatio"`
	ChangeRatio           float64 `json:"changeRatio"`
	ChangeWorkRatio       float64 `json:"changeWorkRatio"`
}

// phase is what the operator needed to bring all objects to where they should be.
type phase struct {
	Span              span     `json:"span"`
	CPUSeconds        float64  `json:"operatorCPUSeconds"`
	TurnsPerObject    float64  `json:"turnsPerObject"`
	Requests          requests `json:"requests"`
	RequestsPerObject float64  `json:"requestsPerObject"`
	WritesPerObject   float64  `json:"writesPerObject"`
}

// calm is what the operator does when there is nothing to do.
type calm struct {
	Requests   requests `json:"requests"`
	Writes     int      `json:"writes"`
	CPUPercent float64  `json:"cpuPercent"`
	RSS        int64    `json:"rssBytes"`
}

// measureRounds measures a fleet again and again, for the machine's speed changes within
// minutes, and plain calls and operator take turns.
func measureRounds(ctx context.Context, api *api, o options, n int) (fleet, error) {
	var all []fleet
	for i := range o.rounds {
		progress("%d objects: round %d of %d", n, i+1, o.rounds)
		f, err := measureFleet(ctx, api, o, n, i+1)
		if err != nil {
			return f, err
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b fleet) int { return cmp.Compare(a.CreateRatioSequential, b.CreateRatioSequential) })
	middle := all[len(all)/2]
	for _, f := range all {
		middle.Rounds = append(middle.Rounds, f.CreateRatioSequential)
	}
	return middle, nil
}

func measureFleet(ctx context.Context, api *api, o options, n, round int) (f fleet, err error) {
	f.Objects = n
	named := fmt.Sprintf("%d-%d", n, round)
	progress("%d objects: plain calls, one after the other", n)
	if f.Sequential, err = measurePlain(ctx, api, o, "sequential-"+named, n, 1); err != nil {
		return f, err
	}
	progress("%d objects: plain calls, %d at a time", n, workers)
	if f.Parallel, err = measurePlain(ctx, api, o, "parallel-"+named, n, workers); err != nil {
		return f, err
	}
	err = f.measureOperator(ctx, api, o, "operator-"+named)
	f.compare()
	return f, err
}

func (f *fleet) measureOperator(ctx context.Context, api *api, o options, namespace string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.patience+o.rest)
	defer cancel()
	s, err := openStage(ctx, api, namespace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(), api.clear(ctx, namespace)) }()
	p, err := startOperator(ctx, api, o)
	if err != nil {
		return err
	}
	defer p.stop()
	m := meter{stage: s, process: p, n: f.Objects}
	return f.life(ctx, m, o.rest)
}

// life has the fleet created, left in peace, and changed.
func (f *fleet) life(ctx context.Context, m meter, peace time.Duration) (err error) {
	progress("%d objects: the operator, from nothing to ready", f.Objects)
	f.Create, err = m.phase(ctx, 1, func(ctx context.Context, i int) error {
		return m.stage.api.Create(ctx, newMemcached(m.stage.namespace, i))
	})
	if err != nil {
		return err
	}
	progress("%d objects: the operator at rest for %s", f.Objects, peace)
	if f.Rest, err = m.rest(ctx, peace); err != nil {
		return err
	}
	progress("%d objects: the operator, every object changed", f.Objects)
	f.Change, err = m.phase(ctx, 2, func(ctx context.Context, i int) error {
		return m.stage.api.Patch(ctx, newMemcached(m.stage.namespace, i), grow("size", 2))
	})
	return err
}

func (f *fleet) compare() {
	calls := f.Parallel.creation()
	f.CreateRatio = f.Create.Span.Seconds / calls.Seconds
	f.CreateRatioSequential = f.Create.Span.Seconds / f.Sequential.creation().Seconds
	f.CreateRatioChildren = f.Create.Span.Seconds / f.Parallel.Children.Seconds
	f.CreateWorkRatio = f.Create.Span.AllCPUSeconds / calls.AllCPUSeconds
	f.ChangeRatio = f.Change.Span.Seconds / f.Parallel.Change.Seconds
	f.ChangeWorkRatio = f.Change.Span.AllCPUSeconds / f.Parallel.Change.AllCPUSeconds
}

// meter reads what the operator consumes.
type meter struct {
	stage   *stage
	process *process
	n       int
}

// reading is all that is counted, at one moment.
type reading struct {
	requests requests
	cpu      time.Duration
	turns    float64
}

// read waits for silence, so that everything belongs to one phase only.
func (m meter) read(ctx context.Context) (reading, error) {
	all, err := m.stage.api.ledger.quiet(ctx)
	if err != nil {
		return reading{}, err
	}
	cpu, err := m.process.cpu()
	return reading{all, cpu, m.process.turns(ctx)}, err
}

// phase calls for every object and waits until the operator says that all answer.
func (m meter) phase(ctx context.Context, size int32, call func(context.Context, int) error) (p phase, err error) {
	before, err := m.read(ctx)
	if err != nil {
		return p, err
	}
	t, err := m.stage.expect(ctx, &cachev1.Memcached{}, m.n, sized(size, allAnswer))
	if err != nil {
		return p, err
	}
	p.Span, err = timed(func() error {
		return errors.Join(inParallel(ctx, workers, m.n, call), t.wait(ctx))
	})
	if err != nil {
		return p, err
	}
	after, err := m.read(ctx)
	p.since(before, after, m.n)
	return p, err
}

func (p *phase) since(before, after reading, n int) {
	p.CPUSeconds = (after.cpu - before.cpu).Seconds()
	p.Requests = after.requests.minus(before.requests)
	p.TurnsPerObject = (after.turns - before.turns) / float64(n)
	p.RequestsPerObject = float64(p.Requests.total()) / float64(n)
	p.WritesPerObject = float64(p.Requests.writes()) / float64(n)
}

// rest watches the operator for a while in which nothing happens.
func (m meter) rest(ctx context.Context, peace time.Duration) (r calm, err error) {
	before, err := m.read(ctx)
	if err != nil {
		return r, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return r, ctx.Err()
	case <-time.After(peace):
	}
	cpu, err := m.process.cpu()
	if err != nil {
		return r, err
	}
	r.CPUPercent = 100 * (cpu - before.cpu).Seconds() / time.Since(began).Seconds()
	all, err := m.stage.api.ledger.read()
	if err != nil {
		return r, err
	}
	r.Requests = all.minus(before.requests)
	r.Writes = r.Requests.writes()
	r.RSS, err = m.process.rss()
	return r, err
}
