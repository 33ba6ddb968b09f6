// Package observe reads what the packages rollout and job describe from a cluster, for drivers.
package observe

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/rollout"
)

// Deployment returns the state of the Deployment that has the name of the object, and of its pods. The application must
// own Deployments and watch Pods. An error means that nothing is known.
func Deployment(ctx context.Context, c client.Reader, x client.Object) (rollout.State, error) {
	d := &appsv1.Deployment{}
	switch err := c.Get(ctx, client.ObjectKeyFromObject(x), d); {
	case apierrors.IsNotFound(err):
		return rollout.State{}, nil
	case err != nil:
		return rollout.State{}, fmt.Errorf("cannot read the Deployment: %w", err)
	}
	mine := client.MatchingLabels{
		lifecycle.LabelApp: d.Spec.Template.Labels[lifecycle.LabelApp], lifecycle.LabelInstance: x.GetName(),
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(x.GetNamespace()), mine); err != nil {
		return rollout.State{}, fmt.Errorf("cannot list the Deployment's pods: %w", err)
	}
	return rollout.Of(d, pods.Items), nil
}
