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

// create makes the pods: one, then two, then four at a time. What is refused to all, for
// a quota or a policy, so costs a single request.
func (d Driver) create(ctx context.Context, obj *appv1.PodSet, seen podset.World, births []podset.NewPod) error {
	births = slices.Clone(births)
	template := podset.Fingerprint(obj)
	spare, stop := iter.Pull(podset.Free(obj.Name, seen))
	defer stop()
	for range births {
		spare()
	}
	for size := 1; len(births) > 0; size *= 2 {
		batch := births[:min(size, len(births))]
		taken := make([]bool, len(batch))
		err := d.hands.inParallel(len(batch), func(i int) (err error) {
			taken[i], err = d.one(ctx, obj, template, batch[i])
			return err
		})
		if err != nil {
			return err
		}
		births = births[len(batch):]
		for i := range batch {
			if taken[i] {
				name, _ := spare()
				births = append(births, podset.NewPod{Name: name, Attempt: batch[i].Attempt})
			}
		}
	}
	return nil
}

// one makes a pod, or reports that its name is taken by a pod that is not the set's.
func (d Driver) one(ctx context.Context, obj *appv1.PodSet, template string, b podset.NewPod) (taken bool, err error) {
	err = d.client.Create(ctx, podset.PodFor(obj, template, b.Name, b.Attempt))
	switch {
	case apierrors.IsAlreadyExists(err):
		return d.meet(ctx, obj, b.Name)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account"):
		return false, &lifecycle.Deferred{Reason: "the namespace has no service account yet"}
	case err != nil:
		return false, fmt.Errorf("cannot create pod %q: %w", b.Name, err)
	}
	return false, nil
}

// meet finds out who has the name that a pod was to get.
func (d Driver) meet(ctx context.Context, obj *appv1.PodSet, name string) (taken bool, err error) {
	p := &corev1.Pod{}
	if err := d.live.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: name}, p); err != nil {
		return false, fmt.Errorf("cannot see whose pod %q is: %w", name, err)
	}
	who := read(obj, p)
	switch {
	case metav1.GetControllerOfNoCopy(p) != nil && !who.Owned, who.Leaving:
		return true, nil
	case who.Active():
		return false, nil // made before, by a request whose answer was lost
	case !who.Matches:
		if who.Owned {
			err = d.disown(ctx, obj, who)
		}
		return true, err
	}
	return false, fmt.Errorf("pod %q belongs to the set and was not seen yet", name)
}
