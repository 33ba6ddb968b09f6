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

// evictedAgain is how soon a refused eviction is tried again. The disruption controller
// counts a pod that has become ready within a second, as a rule.
const evictedAgain = 2 * time.Second

// evict ends the very pod that was seen, if the disruption budgets allow it. A drain at
// the same time asks for the same budget, so that the two never take a quorum together.
func (d *Driver) evict(ctx context.Context, running *corev1.Pod) error {
	uid := running.UID
	err := d.client.SubResource("eviction").Create(ctx, reference(running), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: running.Namespace, Name: running.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
	if apierrors.IsTooManyRequests(err) {
		return &lifecycle.Deferred{
			Reason: fmt.Sprintf("the pod %s cannot be evicted: %s", running.Name, objection(err)), After: evictedAgain,
		}
	}
	if err != nil && !apierrors.IsNotFound(err) && !severalBudgets(err) {
		return fmt.Errorf("cannot evict the pod %s: %w", running.Name, err)
	}
	return d.remove(ctx, running) // after an eviction, only for the client to wait until the cache shows it
}

// severalBudgets says that a user's own disruption budget selects the pod as well. The
// API server evicts no such pod for any caller, so no drain can race with a deletion.
func severalBudgets(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "more than one PodDisruptionBudget")
}

// objection is why an eviction was refused. The cause names the disruption budget, and
// the message does not.
func objection(err error) string {
	var refused apierrors.APIStatus
	said := err.Error()
	if errors.As(err, &refused) && refused.Status().Details != nil {
		for _, c := range refused.Status().Details.Causes {
			if c.Type == policyv1.DisruptionBudgetCause && c.Message != "" {
				said = c.Message
			}
		}
	}
	return strings.TrimSuffix(said, ".")
}
