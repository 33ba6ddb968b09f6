package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// evictionRetry is the delay before a refused eviction is retried. The disruption controller
// usually counts a pod within a second of its readiness.
const evictionRetry = 2 * time.Second

// evict evicts exactly the observed pod, if the disruption budgets allow it. A concurrent node
// drain uses the same budget, so that the two never break a quorum together.
func (d *Driver) evict(ctx context.Context, running *corev1.Pod) error {
	uid := running.UID
	err := d.client.SubResource("eviction").Create(ctx, reference(running), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: running.Namespace, Name: running.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
	if apierrors.IsTooManyRequests(err) {
		return &lifecycle.Deferred{
			Reason: fmt.Sprintf("the pod %s cannot be evicted: %s", running.Name, evictionMessage(err)), After: evictionRetry,
		}
	}
	if err != nil && !apierrors.IsNotFound(err) && !severalBudgets(err) {
		return fmt.Errorf("cannot evict the pod %s: %w", running.Name, err)
	}
	return d.remove(ctx, running) // after an eviction this only makes the client wait for its cache
}

// severalBudgets reports that a user's own disruption budget also selects the pod. The API
// server then evicts the pod for no caller, so no drain can race with a deletion.
func severalBudgets(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "more than one PodDisruptionBudget")
}

// evictionMessage is why an eviction was refused. The cause names the disruption budget, the
// message does not.
func evictionMessage(err error) string {
	var refused apierrors.APIStatus
	message := err.Error()
	if errors.As(err, &refused) && refused.Status().Details != nil {
		for _, c := range refused.Status().Details.Causes {
			if c.Type == policyv1.DisruptionBudgetCause && c.Message != "" {
				message = c.Message
			}
		}
	}
	return strings.TrimSuffix(message, ".")
}
