package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// frozenFor is how long a freeze lasts. The instance has to recover by itself after it.
const frozenFor = 45 * time.Second

// held is how long the policy of the layout may hold a change.
func (l layout) held() time.Duration {
	switch {
	case l.has(freezes):
		return frozenFor
	case l.has(windows):
		return 2 * time.Minute // a change may need two windows
	}
	return 0
}

// placePolicy creates the OperationPolicy of the layout for the namespace of the round.
func (s *subject) placePolicy(ctx context.Context) error {
	if !s.layout.policy() {
		return nil
	}
	p := &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.Key.Namespace}}
	p.Spec.Selector.Namespaces = []string{s.Key.Namespace}
	switch {
	case s.layout.has(freezes):
		until := metav1.NewTime(time.Now().Add(frozenFor))
		p.Spec.Freeze = &v1alpha1.Freeze{Reason: "chaos", Until: &until}
	case s.layout.has(windows):
		p.Spec.Windows = []v1alpha1.Window{{Schedule: "*/2 * * * *", Duration: metav1.Duration{Duration: time.Minute}}}
	case s.layout.has(budgets):
		p.Spec.Budget = &v1alpha1.Budget{MaxDisrupted: 1, Scope: "Namespace"}
	}
	return s.api.Create(ctx, p)
}

func (s *subject) removePolicy(ctx context.Context) error {
	if !s.layout.policy() {
		return nil
	}
	return client.IgnoreNotFound(s.api.Delete(ctx, &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.Key.Namespace}}))
}
