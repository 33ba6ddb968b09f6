package e2e_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached/contract"
	"github.com/governor-dev/governor/lifecycle"
)

// TestContract runs the contract of the simulator's model on real pods.
func TestContract(t *testing.T) {
	contract.Run(t, func(t *testing.T) contract.System { return newInstance(t) })
}

// instance is a real memcached in its own namespace.
type instance struct {
	key client.ObjectKey
}

func newInstance(t *testing.T) *instance {
	t.Helper()
	return &instance{client.ObjectKey{Namespace: newNamespace(t), Name: "cache"}}
}

// Apply implements contract.System.
func (i *instance) Apply(t *testing.T, edit func(*cachev1.MemcachedSpec)) {
	t.Helper()
	m := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: i.key.Namespace, Name: i.key.Name}}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := api.Get(t.Context(), i.key, m)
		if apierrors.IsNotFound(err) {
			edit(&m.Spec)
			return api.Create(t.Context(), m)
		}
		if err != nil {
			return err
		}
		edit(&m.Spec)
		return api.Update(t.Context(), m)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Settles implements contract.System.
func (i *instance) Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *cachev1.Memcached {
	t.Helper()
	m := &cachev1.Memcached{}
	eventually(t, fmt.Sprintf("%s tells %s %s", i.key, outcome, reason), func(ctx context.Context) error {
		if err := api.Get(ctx, i.key, m); err != nil {
			return err
		}
		return tells(m, outcome, reason)
	})
	return m
}

// tells compares the object's conditions for its current generation.
func tells(m lifecycle.Resource, outcome lifecycle.Outcome, reason string) error {
	_, conditions := m.StatusFields()
	for _, want := range lifecycle.StandardConditions(lifecycle.Decision{Outcome: outcome, Reason: reason}, nil) {
		got := apimeta.FindStatusCondition(*conditions, want.Type)
		if got == nil || got.Status != want.Status || got.ObservedGeneration != m.GetGeneration() {
			return fmt.Errorf("%w: %s is %+v", errNotYet, want.Type, got)
		}
	}
	if ready := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionReady); ready.Reason != reason {
		return fmt.Errorf("%w: it is %s: %s", errNotYet, ready.Reason, ready.Message)
	}
	return nil
}

// LosePod implements contract.System.
func (i *instance) LosePod(t *testing.T, name string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: i.key.Namespace, Name: name}}
	if err := api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

// ready creates an instance of that size and waits for it.
func ready(t *testing.T, size int32) *instance {
	t.Helper()
	i := newInstance(t)
	i.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = size })
	i.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	return i
}

// pods are the instance's pods.
func (i *instance) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := api.List(t.Context(), &list, client.InNamespace(i.key.Namespace), client.MatchingLabels{lifecycle.LabelInstance: i.key.Name}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
