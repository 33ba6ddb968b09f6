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

// fleet is the result for one number of objects: the median round.
type fleet struct {
	Objects int `json:"objects"`
	// Rounds are the ratios to sequential plain calls of all rounds, in ascending order.
	Rounds     []float64 `json:"createRatiosSequential"`
	Sequential plain     `json:"plainSequential"`
	Parallel   plain     `json:"plainParallel"`
	Create     phase     `json:"create"`
	Idle       idle      `json:"rest"`
	Change     phase     `json:"change"`

	// The ratios compare the operator with the plain calls, in time and in CPU time.
	CreateRatio           float64 `json:"createRatio"`
	CreateRatioSequential float64 `json:"createRatioSequential"`
	CreateRatioChildren   float64 `json:"createRatioChildrenOnly"`
	CreateWorkRatio       float64 `json:"createWorkRatio"`
	ChangeRatio           float64 `json:"changeRatio"`
	ChangeWorkRatio       float64 `json:"changeWorkRatio"`
}

// phase is the cost of bringing all objects to their desired state.
type phase struct {
	Span                span     `json:"span"`
	CPUSeconds          float64  `json:"operatorCPUSeconds"`
	ReconcilesPerObject float64  `json:"turnsPerObject"`
	Requests            requests `json:"requests"`
	RequestsPerObject   float64  `json:"requestsPerObject"`
	WritesPerObject     float64  `json:"writesPerObject"`
}

// idle is the cost of the operator when nothing changes.
type idle struct {
	Requests   requests `json:"requests"`
	Writes     int      `json:"writes"`
	CPUPercent float64  `json:"cpuPercent"`
	RSS        int64    `json:"rssBytes"`
}

// measureRounds measures a fleet several times, alternating plain calls and the operator,
// because the machine's speed changes within minutes.
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
	median := all[len(all)/2]
	for _, f := range all {
		median.Rounds = append(median.Rounds, f.CreateRatioSequential)
	}
	return median, nil
}

func measureFleet(ctx context.Context, api *api, o options, n, round int) (f fleet, err error) {
	f.Objects = n
	named := fmt.Sprintf("%d-%d", n, round)
	progress("%d objects: sequential plain calls", n)
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
	s, err := openEnv(ctx, api, namespace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(), api.clear(ctx, namespace)) }()
	p, err := startOperator(ctx, api, o)
	if err != nil {
		return err
	}
	defer p.stop()
	m := meter{env: s, process: p, n: f.Objects}
	return f.measurePhases(ctx, m, o.rest)
}

// measurePhases creates the fleet, leaves it idle, and changes it.
func (f *fleet) measurePhases(ctx context.Context, m meter, duration time.Duration) (err error) {
	progress("%d objects: the operator, from nothing to ready", f.Objects)
	f.Create, err = m.phase(ctx, 1, func(ctx context.Context, i int) error {
		return m.env.api.Create(ctx, newMemcached(m.env.namespace, i))
	})
	if err != nil {
		return err
	}
	progress("%d objects: the idle operator for %s", f.Objects, duration)
	if f.Idle, err = m.idle(ctx, duration); err != nil {
		return err
	}
	progress("%d objects: the operator, every object changed", f.Objects)
	f.Change, err = m.phase(ctx, 2, func(ctx context.Context, i int) error {
		return m.env.api.Patch(ctx, newMemcached(m.env.namespace, i), grow("size", 2))
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

// meter reads the resource usage of the operator.
type meter struct {
	env     *testEnv
	process *process
	n       int
}

// reading is the usage at one moment.
type reading struct {
	requests   requests
	cpu        time.Duration
	reconciles float64
}

// read waits until the operator sends no more requests, so that each request belongs to
// one phase.
func (m meter) read(ctx context.Context) (reading, error) {
	all, err := m.env.api.auditLog.quiet(ctx)
	if err != nil {
		return reading{}, err
	}
	cpu, err := m.process.cpu()
	return reading{all, cpu, m.process.reconciles(ctx)}, err
}

// phase calls for every object and waits until the operator reports all objects ready.
func (m meter) phase(ctx context.Context, size int32, call func(context.Context, int) error) (p phase, err error) {
	before, err := m.read(ctx)
	if err != nil {
		return p, err
	}
	t, err := m.env.expect(ctx, &cachev1.Memcached{}, m.n, sized(size, settled))
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
	p.ReconcilesPerObject = (after.reconciles - before.reconciles) / float64(n)
	p.RequestsPerObject = float64(p.Requests.total()) / float64(n)
	p.WritesPerObject = float64(p.Requests.writes()) / float64(n)
}

// idle measures the operator while nothing happens.
func (m meter) idle(ctx context.Context, duration time.Duration) (r idle, err error) {
	before, err := m.read(ctx)
	if err != nil {
		return r, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return r, ctx.Err()
	case <-time.After(duration):
	}
	cpu, err := m.process.cpu()
	if err != nil {
		return r, err
	}
	r.CPUPercent = 100 * (cpu - before.cpu).Seconds() / time.Since(began).Seconds()
	all, err := m.env.api.auditLog.read()
	if err != nil {
		return r, err
	}
	r.Requests = all.minus(before.requests)
	r.Writes = r.Requests.writes()
	r.RSS, err = m.process.rss()
	return r, err
}
