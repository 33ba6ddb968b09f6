package driver

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// create creates the pods in batches of one, two, four and so on. A quota or a policy that
// rejects them all then costs a single request.
func (d Driver) create(ctx context.Context, obj *appv1.PodSet, seen podset.World, pods []podset.NewPod) error {
	pods = slices.Clone(pods)
	template := podset.Fingerprint(obj)
	nextName, stop := iter.Pull(podset.Free(obj.Name, seen))
	defer stop()
	for range pods {
		nextName()
	}
	for size := 1; len(pods) > 0; size *= 2 {
		batch := pods[:min(size, len(pods))]
		taken := make([]bool, len(batch))
		err := d.requests.inParallel(len(batch), func(i int) (err error) {
			taken[i], err = d.createOne(ctx, obj, template, batch[i])
			return err
		})
		if err != nil {
			return err
		}
		pods = pods[len(batch):]
		for i := range batch {
			if taken[i] {
				name, _ := nextName()
				pods = append(pods, podset.NewPod{Name: name, Attempt: batch[i].Attempt})
			}
		}
	}
	return nil
}

// createOne creates a pod, or reports that a pod outside the set has its name.
func (d Driver) createOne(ctx context.Context, obj *appv1.PodSet, template string, b podset.NewPod) (taken bool, err error) {
	err = d.client.Create(ctx, podset.PodFor(obj, template, b.Name, b.Attempt))
	switch {
	case apierrors.IsAlreadyExists(err):
		return d.checkName(ctx, obj, b.Name)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account"):
		return false, &lifecycle.Deferred{Reason: "the namespace has no service account yet"}
	case err != nil:
		return false, fmt.Errorf("cannot create pod %q: %w", b.Name, err)
	}
	return false, nil
}

// checkName finds the pod that has the name of the pod to create.
func (d Driver) checkName(ctx context.Context, obj *appv1.PodSet, name string) (taken bool, err error) {
	p := &corev1.Pod{}
	if err := d.live.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: name}, p); err != nil {
		return false, fmt.Errorf("cannot read pod %q: %w", name, err)
	}
	found := read(obj, p)
	switch {
	case metav1.GetControllerOfNoCopy(p) != nil && !found.Owned, found.Terminating:
		return true, nil
	case found.Active():
		return false, nil // an earlier request created it, and its response was lost
	case !found.Matches:
		if found.Owned {
			err = d.removeOwner(ctx, obj, found)
		}
		return true, err
	}
	return false, fmt.Errorf("pod %q belongs to the set and is not in the cache yet", name)
}
