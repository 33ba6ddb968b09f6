package main

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
)

// plain is how long plain client calls take for the operator's work. It is the baseline of
// the same run.
type plain struct {
	AtOnce   int  `json:"atOnce"`
	Owners   span `json:"owners"`
	Children span `json:"children"`
	Change   span `json:"change"`
}

// creation is the time for all objects, including the owners.
func (p plain) creation() span { return p.Owners.plus(p.Children) }

func measurePlain(ctx context.Context, api *api, o options, namespace string, n, atOnce int) (p plain, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	s, err := openEnv(ctx, api, namespace)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, s.close(), api.clear(ctx, namespace)) }()
	run := plainRun{env: s, atOnce: atOnce, owners: make([]*cachev1.Memcached, n)}
	p.AtOnce = atOnce
	if p.Owners, err = timed(func() error { return inParallel(ctx, atOnce, n, run.createOwner) }); err != nil {
		return p, err
	}
	if p.Children, err = run.untilRolledOut(ctx, 1, run.createChildren); err != nil {
		return p, err
	}
	p.Change, err = run.untilRolledOut(ctx, 2, run.change)
	return p, err
}

// plainRun is one series of plain calls.
type plainRun struct {
	env    *testEnv
	atOnce int
	owners []*cachev1.Memcached
}

// untilRolledOut calls for every owner and waits for the last pod.
func (r plainRun) untilRolledOut(ctx context.Context, size int32, call func(context.Context, int) error) (span, error) {
	n := len(r.owners)
	t, err := r.env.expect(ctx, &appsv1.Deployment{}, n, sized(size, rolledOut))
	if err != nil {
		return span{}, err
	}
	return timed(func() error {
		if err := inParallel(ctx, r.atOnce, n, call); err != nil {
			return err
		}
		return t.wait(ctx)
	})
}

func (r plainRun) createOwner(ctx context.Context, i int) error {
	r.owners[i] = newMemcached(r.env.namespace, i)
	return r.env.api.Create(ctx, r.owners[i])
}

func (r plainRun) createChildren(ctx context.Context, i int) error {
	all, err := childrenOf(r.owners[i])
	if err != nil {
		return err
	}
	for _, obj := range all {
		if err := r.env.api.Create(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// change changes the owner and the children, as the operator would.
func (r plainRun) change(ctx context.Context, i int) error {
	if err := r.env.api.Patch(ctx, r.owners[i], grow("size", 2)); err != nil {
		return err
	}
	dep := &appsv1.Deployment{}
	dep.Namespace, dep.Name = r.owners[i].Namespace, r.owners[i].Name
	if err := r.env.api.Patch(ctx, dep, grow("replicas", 2), client.FieldOwner("plain")); err != nil {
		return err
	}
	kept, err := revisionOf(r.owners[i], 2)
	if err != nil {
		return err
	}
	return r.env.api.Create(ctx, kept)
}
