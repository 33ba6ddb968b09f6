package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
)

// workers is the number of objects that the operator reconciles at the same time (the
// engine's default), and so the number of concurrent plain calls.
const workers = 8

func children() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}}
}

func newMemcached(namespace string, i int) *cachev1.Memcached {
	m := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("m-%d", i)}}
	m.Spec.Size = 1
	return m
}

// childrenOf renders the objects that the operator would create for the owner.
func childrenOf(owner *cachev1.Memcached) ([]client.Object, error) {
	rendered, err := memcached.Planner{}.Resources(owner, memcached.World{})
	if err != nil {
		return nil, err
	}
	all := make([]client.Object, 0, len(rendered))
	for _, obj := range rendered {
		obj.SetNamespace(owner.Namespace)
		obj.SetOwnerReferences([]metav1.OwnerReference{
			*metav1.NewControllerRef(owner, cachev1.GroupVersion.WithKind("Memcached")),
		})
		all = append(all, obj.(client.Object))
	}
	kept, err := revisionOf(owner, 1)
	return append(all, kept), err
}

// revisionOf returns the ControllerRevision that the operator would create for the spec.
func revisionOf(owner *cachev1.Memcached, number int64) (*appsv1.ControllerRevision, error) {
	spec, _, err := revision.SpecOf(owner)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Namespace, Name: revision.Name("Memcached", owner, number), Labels: revision.Selector("Memcached", owner.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, cachev1.GroupVersion.WithKind("Memcached"))},
		},
		Revision: number, Data: runtime.RawExtension{Raw: spec},
	}, err
}

// settled reports whether the operator reports the object as settled.
func settled(obj client.Object) bool {
	m := obj.(*cachev1.Memcached)
	return m.Status.ObservedGeneration == m.Generation && m.Status.ReadyReplicas == m.Spec.Size &&
		apimeta.IsStatusConditionTrue(m.Status.Conditions, lifecycle.ConditionReady)
}

// sized restricts good to objects and Deployments of that size.
func sized(size int32, good func(client.Object) bool) func(client.Object) bool {
	return func(obj client.Object) bool {
		switch o := obj.(type) {
		case *cachev1.Memcached:
			return o.Spec.Size == size && good(obj)
		case *appsv1.Deployment:
			return *o.Spec.Replicas == size && good(obj)
		}
		return false
	}
}

// grow is a merge patch without a resourceVersion, the fastest change of a size.
func grow(field string, size int32) client.Patch {
	return client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{%q:%d}}`, field, size))
}

// inParallel calls do for 0 to n-1 with the given concurrency, until one call fails.
func inParallel(ctx context.Context, at, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range at {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
