package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	memcachedchaos "github.com/governor-dev/governor/apps/memcached/chaos"
	podsetchaos "github.com/governor-dev/governor/apps/podset/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// stateless is an application whose pods keep no data: the oracle checks the pods that are ready, the
// foreign objects, and that nothing is written at rest.
type stateless struct {
	kind      schema.GroupVersionKind
	catalogue func() chaos.Catalogue
	// size is the field of the number of pods.
	size string
	// declared is the rest of the spec.
	declared map[string]any
}

// applications are the stateless ones, by the feature of the layout.
var applications = map[string]stateless{
	memcached: {
		schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"},
		memcachedchaos.Catalogue, "size", map[string]any{"version": "1.6.38", "memory": "64Mi"},
	},
	podset: {schema.GroupVersionKind{Group: "app.example.com", Version: "v1alpha1", Kind: "PodSet"}, podsetchaos.Catalogue, "replicas", map[string]any{}},
}

// application is the stateless application of the layout.
func (l layout) application() (stateless, bool) {
	for feature, app := range applications {
		if l.has(feature) {
			return app, true
		}
	}
	return stateless{}, false
}

// plannedStateless is a round with one of the stateless applications; false if no manipulation of it is chosen.
func (a *arena) plannedStateless(seed uint64) (plan, bool) {
	chance := rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	l := layout{int32(2 + chance.IntN(3)), []string{[]string{memcached, podset}[chance.IntN(2)]}}
	all := a.of(l)
	if len(all) == 0 {
		return plan{}, false
	}
	p := plan{seed: seed, layout: l, moves: chaos.Compose(all, 1+chance.IntN(3), chance)}
	first := chaos.Compose(oneKind(all, chance), 1, chance)[0]
	first.Pause = p.moves[0].Pause
	p.moves[0] = first
	return p, true
}

// of is the catalogue for the layout.
func (a *arena) of(l layout) chaos.Catalogue {
	if app, ok := l.application(); ok {
		return a.chosen(app.catalogue())
	}
	return a.all
}

// declareStateless creates the custom resource.
func (s *subject) declareStateless(ctx context.Context, app stateless) error {
	spec := runtime.DeepCopyJSON(app.declared)
	spec[app.size] = int64(s.layout.size)
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(app.kind)
	o.SetNamespace(s.Key.Namespace)
	o.SetName(s.Key.Name)
	return s.api.Create(ctx, o, client.FieldOwner(s.Manager))
}

func (s *subject) custom(ctx context.Context) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(s.Kind)
	return o, s.api.Get(ctx, s.Key, o)
}

// conditions are those of the instance.
func (s *subject) conditions(ctx context.Context) ([]metav1.Condition, error) {
	o, err := s.custom(ctx)
	if err != nil {
		return nil, err
	}
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &status)
	return status.Status.Conditions, err
}

// statelessConverged returns nil if the instance says that it is ready, and as many pods are as declared.
func (s *subject) statelessConverged(ctx context.Context, app stateless) error {
	o, err := s.custom(ctx)
	if err != nil {
		return err
	}
	want, _, _ := unstructured.NestedInt64(o.Object, "spec", app.size)
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	conditions, err := s.conditions(ctx)
	ready := 0
	for _, p := range s.members(ctx) {
		if p.DeletionTimestamp == nil && podReady(p) && p.Status.Phase == corev1.PodRunning {
			ready++
		}
	}
	switch {
	case err != nil:
		return err
	case paused || !meta.IsStatusConditionTrue(conditions, "Ready"):
		return fmt.Errorf("the instance says %s", s.words(ctx))
	case observed != o.GetGeneration():
		return fmt.Errorf("generation %d is observed of %d", observed, o.GetGeneration())
	case ready != int(want):
		return fmt.Errorf("%d pods are ready, %d are declared", ready, want)
	}
	return nil
}

// carryOutStateless is a round with a stateless application.
func (v *adversary) carryOutStateless(ctx context.Context, r *round) {
	foreign, err := v.placeForeign(ctx)
	if err == nil {
		v.bornAs, err = v.custom(ctx)
	}
	if err != nil {
		r.err = err
		return
	}
	undone := v.play(ctx, r.moves)
	began := time.Now()
	healed := v.heals(ctx, &r.verdict, began)
	if healed != nil {
		healed = fmt.Errorf("not healed %w; the instance says %q", healed, v.words(ctx))
	} else {
		healed = v.rests(ctx, v.rest)
	}
	for _, err := range []error{undone, healed, v.foreignTouched(ctx, foreign), v.strange()} {
		if err != nil {
			r.violations = append(r.violations, err.Error())
		}
	}
	r.acts = v.person.acts()
}

// strange returns an error for each message that the adversary knows no remedy for.
func (v *adversary) strange() error {
	var all error
	for said := range v.person.told {
		_, _, err := said.remedyOf()
		all = errors.Join(all, err)
	}
	return all
}

// formerSpec gives the custom resource the spec of the beginning.
func formerSpec(ctx context.Context, v *adversary, _ []string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := v.custom(ctx)
		if err != nil {
			return err
		}
		now.Object["spec"] = v.bornAs.DeepCopy().Object["spec"]
		return v.api.Update(ctx, now, client.FieldOwner(v.Manager))
	})
}
