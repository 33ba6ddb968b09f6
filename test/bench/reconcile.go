package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/apps/memcached/driver"
	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
)

// reconcileCost is the cost of one reconcile of the engine, compared with one plain request.
type reconcileCost struct {
	Name      string  `json:"name"`
	Nanos     int64   `json:"nanosPerTurn"`
	PerSecond float64 `json:"turnsPerSecond"`
	Allocs    int64   `json:"allocsPerTurn"`
	Bytes     int64   `json:"bytesPerTurn"`

	// Beside is the plain request of the same run, and Ratio is the reconcile's time
	// divided by the request's.
	Beside      string  `json:"beside"`
	BesideNanos int64   `json:"besideNanos"`
	Ratio       float64 `json:"ratio"`
}

// reconcileBench runs memcached's own planner and driver, so that the engine reconciles again
// on each beat. It measures the whole reconcile through the real queue, cache and client.
type reconcileBench struct {
	memcached.Planner
	lifecycle.Driver[*cachev1.Memcached, memcached.World]

	measured atomic.Bool
	beats    chan struct{}
	changing atomic.Bool
	edits    atomic.Int64
}

// Next makes the engine reconcile a settled object again immediately.
func (m *reconcileBench) Next(want *cachev1.Memcached, seen memcached.World, now time.Time) lifecycle.Decision {
	d := m.Planner.Next(want, seen, now)
	if d.Outcome == lifecycle.OutcomeSettled && m.measured.Load() {
		return d.Heartbeat(time.Nanosecond)
	}
	return d
}

// Resources changes an annotation each time, if each reconcile shall change something.
func (m *reconcileBench) Resources(want *cachev1.Memcached, seen memcached.World) ([]lifecycle.Object, error) {
	all, err := m.Planner.Resources(want, seen)
	if !m.changing.Load() {
		return all, err
	}
	for _, obj := range all {
		if _, ok := obj.(*appsv1.Deployment); ok {
			obj.SetAnnotations(map[string]string{"example.com/edit": fmt.Sprint(m.edits.Add(1))})
		}
	}
	return all, err
}

// Observe waits for the next beat.
func (m *reconcileBench) Observe(ctx context.Context, obj *cachev1.Memcached) (memcached.World, error) {
	if m.measured.Load() {
		select {
		case <-m.beats:
		case <-ctx.Done():
			return memcached.World{}, ctx.Err()
		}
	}
	return m.Driver.Observe(ctx, obj)
}

// bench is the benchmark of a reconcile: from one beat to the next.
func (m *reconcileBench) bench(b *testing.B) {
	b.ReportAllocs()
	m.beats <- struct{}{} // an earlier reconcile is complete
	b.ResetTimer()
	for range b.N {
		m.beats <- struct{}{}
	}
}

const reconcileNamespace = "turns"

// measureReconciles runs the engine in this process, to count its allocations.
func measureReconciles(ctx context.Context, api *api, patience time.Duration) (all []reconcileCost, err error) {
	progress("single reconciles of the engine")
	ctx, cancel := context.WithTimeout(ctx, patience)
	m := &reconcileBench{beats: make(chan struct{})}
	ended, err := m.start(ctx, api)
	if err != nil {
		cancel()
		return nil, err
	}
	defer func() { cancel(); err = errors.Join(err, <-ended) }()
	if err := settleOne(ctx, api); err != nil {
		return nil, err
	}
	m.measured.Store(true)
	if err := touch(ctx, api, "unchanged"); err != nil {
		return nil, err
	}
	all = append(all, compareReconcile("unchanged", m.bench, "Get", getDeployment(ctx, api)))
	m.changing.Store(true)
	if err := touch(ctx, api, "changing"); err != nil {
		return nil, err
	}
	return append(all, compareReconcile("with a change", m.bench, "Apply", applyDeployment(ctx, api))), nil
}

func compareReconcile(name string, bench func(*testing.B), beside string, request func(*testing.B)) reconcileCost {
	r, plain := testing.Benchmark(bench), testing.Benchmark(request)
	return reconcileCost{
		Name: name, Nanos: r.NsPerOp(), PerSecond: 1e9 / float64(max(1, r.NsPerOp())),
		Allocs: r.AllocsPerOp(), Bytes: r.AllocedBytesPerOp(),
		Beside: beside, BesideNanos: plain.NsPerOp(), Ratio: float64(r.NsPerOp()) / float64(max(1, plain.NsPerOp())),
	}
}

// start starts an operator with one worker in this process.
func (m *reconcileBench) start(ctx context.Context, api *api) (<-chan error, error) {
	mgr, err := ctrl.NewManager(api.config, manager.Options{
		Scheme: api.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	op, err := engine.New(mgr, engine.Options{Namespaces: []string{reconcileNamespace}, Version: "bench"})
	if err != nil {
		return nil, err
	}
	err = engine.Register(op, engine.App[*cachev1.Memcached, memcached.World]{
		Name: memcached.Name, Planner: m, Steps: memcached.Steps(), Driver: m.driver, Workers: 1,
		Owns: children(), Watches: []engine.Watch{{Object: &corev1.Pod{}}},
	})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ended, nil
}

func (m *reconcileBench) driver(a kube.Access) lifecycle.Driver[*cachev1.Memcached, memcached.World] {
	m.Driver = driver.New(a)
	return m
}

// settleOne settles one object and stops the fake controllers: afterwards only the engine
// allocates.
func settleOne(ctx context.Context, api *api) error {
	s, err := openEnv(ctx, api, reconcileNamespace)
	if err != nil {
		return err
	}
	t, err := s.expect(ctx, &cachev1.Memcached{}, 1, settled)
	if err != nil {
		return errors.Join(err, s.close())
	}
	err = api.Create(ctx, newMemcached(reconcileNamespace, 0))
	return errors.Join(err, t.wait(ctx), s.close())
}

// touch changes the object once. Each reconcile then triggers the next one. The engine
// skips an object whose inputs have not changed since its last reconcile.
func touch(ctx context.Context, api *api, why string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touch":%q}}}`, why)
	return api.Patch(ctx, newMemcached(reconcileNamespace, 0), client.RawPatch("application/merge-patch+json", patch))
}

func getDeployment(ctx context.Context, api *api) func(*testing.B) {
	return func(b *testing.B) {
		key := client.ObjectKeyFromObject(newMemcached(reconcileNamespace, 0))
		for range b.N {
			if err := api.Get(ctx, key, &appsv1.Deployment{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// applyDeployment changes an annotation of the same Deployment by server-side apply, as
// one change of a reconcile does.
func applyDeployment(ctx context.Context, api *api) func(*testing.B) {
	return func(b *testing.B) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		u.SetNamespace(reconcileNamespace)
		u.SetName(newMemcached(reconcileNamespace, 0).Name)
		for i := range b.N {
			declared := u.DeepCopy()
			declared.SetAnnotations(map[string]string{"example.com/plain": fmt.Sprint(b.N, i)})
			err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(declared), client.FieldOwner("plain"))
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
