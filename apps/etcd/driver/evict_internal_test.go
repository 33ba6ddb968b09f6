package driver

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/governor-dev/governor/lifecycle"
)

// refusal is what the API server answers when a disruption budget has nothing to spare.
func refusal() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget e needs 2 healthy pods and has 2 currently",
	})
	return err
}

// TestEvictRespectsDisruptionBudgets checks that a refused eviction deletes nothing and
// names the budget, and that an eviction is of the very pod that was seen.
func TestEvictRespectsDisruptionBudgets(t *testing.T) {
	cases := map[string]struct {
		answer  error
		wantErr string
		gone    bool
	}{
		"Allowed":  {nil, "", true},
		"Refused":  {refusal(), "The disruption budget e needs 2 healthy pods", false},
		"Throttle": {apierrors.NewTooManyRequests("too busy", 1), "too busy", false},
		"Broken":   {errors.New("no route"), "cannot evict the pod e-0-0: no route", false},
		"TwoBudgets": {
			apierrors.NewInternalError(errors.New("this pod has more than one PodDisruptionBudget")), "", true,
		},
		"GoneNow": {apierrors.NewNotFound(corev1.Resource("pods"), "e-0-0"), "", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e-0-0", UID: "seen"}}
			asked := &policyv1.Eviction{}
			api := fake.NewClientBuilder().WithObjects(pod).WithInterceptorFuncs(interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceCreateOption) error {
					asked = sub.(*policyv1.Eviction)
					return c.answer
				},
			}).Build()
			err := (&Driver{client: api}).evict(t.Context(), pod)
			if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)) {
				t.Errorf("%v, want %q", err, c.wantErr)
			}
			var later *lifecycle.Deferred
			if waits := errors.As(err, &later); waits != apierrors.IsTooManyRequests(c.answer) {
				t.Errorf("%v waits: %t", err, waits)
			}
			if got := asked.DeleteOptions.Preconditions.UID; *got != "seen" {
				t.Errorf("the eviction is of the pod %q", *got)
			}
			left := api.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
			if gone := apierrors.IsNotFound(left); gone != c.gone {
				t.Errorf("the pod is gone: %t", gone)
			}
		})
	}
}
