package engine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/engine/internal/enforce"
)

// fake is the least custom resource.
type fake struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	generation int64
	conditions []metav1.Condition
}

func (f *fake) StatusFields() (*int64, *[]metav1.Condition) { return &f.generation, &f.conditions }

func (f *fake) DeepCopyObject() runtime.Object {
	out := *f
	return &out
}

func testEngine(now time.Time) *engine[*fake, struct{}] {
	return &engine[*fake, struct{}]{
		operator: &Operator{options: Options{Now: func() time.Time { return now }}, budget: budget.New(1, func() time.Time { return now }), policies: &enforce.Store{}},
		backoff:  workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
	}
}
