package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// changed is the number of clusters that are scaled.
const changed = 5

// fleet is many clusters of three members at once, with TLS, which is the default.
type fleet struct {
	Clusters int `json:"clusters"`
	// Seconds is the time from the first apply until the last cluster is ready.
	// PlainSeconds is the same for plain StatefulSets, which have no TLS.
	Seconds      float64 `json:"seconds"`
	PlainSeconds float64 `json:"plainSeconds"`
	Create       effort  `json:"create"`
	Rest         effort  `json:"rest"`
	// Change is the scaling of some clusters from three to five members and back.
	Changed int    `json:"changedClusters"`
	Change  effort `json:"change"`
}

func measureFleet(ctx context.Context, s *testEnv, o options) (*fleet, error) {
	f := &fleet{Clusters: o.fleet, Changed: min(changed, o.fleet)}
	var theirs, ours []*subject
	for i := range o.fleet {
		x, err := plain(fmt.Sprintf("fleet-plain-%d", i), 3)
		if err != nil {
			return nil, err
		}
		theirs, ours = append(theirs, x), append(ours, governed(fmt.Sprintf("fleet-%d", i), 3, etcdv1.TLSModeManaged))
	}
	progress("%d plain StatefulSets of 3 at once", o.fleet)
	took, err := s.launch(ctx, theirs)
	if err != nil {
		return nil, err
	}
	f.PlainSeconds = took.Seconds()
	if err := s.remove(ctx, theirs...); err != nil {
		return nil, err
	}
	if err := f.live(ctx, s, ours, o); err != nil {
		return nil, err
	}
	return f, s.remove(ctx, ours...)
}

// live creates the fleet, leaves it idle, and changes it.
func (f *fleet) live(ctx context.Context, s *testEnv, all []*subject, o options) (err error) {
	progress("%d clusters of 3 at once", len(all))
	f.Create, err = s.effort(ctx, func() error {
		took, err := s.launch(ctx, all)
		f.Seconds = took.Seconds()
		return err
	})
	if err != nil {
		return err
	}
	progress("the idle operator: %s pause, then %s measured", o.quiet, o.rest)
	if err := pass(ctx, o.quiet); err != nil {
		return err
	}
	if f.Rest, err = s.effort(ctx, func() error { return pass(ctx, o.rest) }); err != nil {
		return err
	}
	progress("%d clusters scaled from 3 to 5 and back", f.Changed)
	f.Change, err = s.effort(ctx, func() error {
		return errors.Join(s.scale(ctx, all[:f.Changed], 5), s.scale(ctx, all[:f.Changed], 3))
	})
	return err
}

// effort returns the work of the operator during do.
func (s *testEnv) effort(ctx context.Context, do func() error) (effort, error) {
	before, err := s.read(ctx)
	if err != nil {
		return effort{}, err
	}
	if err := do(); err != nil {
		return effort{}, err
	}
	after, err := s.read(ctx)
	if err != nil {
		return effort{}, err
	}
	return after.since(before)
}

func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// launch applies all clusters and waits until they are ready.
func (s *testEnv) launch(ctx context.Context, all []*subject) (time.Duration, error) {
	began := time.Now()
	for _, x := range all {
		if err := s.apply(ctx, x); err != nil {
			return 0, err
		}
	}
	err := s.allReady(ctx, all)
	return time.Since(began), err
}

func (s *testEnv) allReady(ctx context.Context, all []*subject) error {
	return s.until(ctx, "all are ready", func(ctx context.Context) error {
		n := 0
		for _, x := range all {
			if pods, err := s.members(ctx, x, nil); err == nil && s.ready(ctx, x, pods) == nil {
				n++
			}
		}
		if n < len(all) {
			return fmt.Errorf("%d of %d clusters are ready", n, len(all))
		}
		return nil
	})
}

func (s *testEnv) scale(ctx context.Context, all []*subject, size int) error {
	for _, x := range all {
		patch := fmt.Appendf(nil, `{"spec":{"size":%d}}`, size)
		if err := s.Patch(ctx, x.objects[0], client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return err
		}
		x.size = size
	}
	return s.allReady(ctx, all)
}
