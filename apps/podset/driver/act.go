package driver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// Act implements lifecycle.Driver. What it is about follows from seen, as in the rules.
func (d Driver) Act(ctx context.Context, obj *appv1.PodSet, seen podset.World, step lifecycle.Step) error {
	n := podset.Count(step)
	switch step.Name {
	case podset.Release:
		return d.letGo(ctx, obj, seen.Strays())
	case podset.Adopt:
		return d.adopt(ctx, obj, seen.Orphans())
	case podset.DeletePods:
		return d.shrink(ctx, obj, seen, podset.PodsToDelete(seen.Actives(), n))
	case podset.ReplaceOutdated:
		return d.shrink(ctx, obj, seen, podset.PodsToDelete(seen.Outdated(podset.Fingerprint(obj)), n))
	case podset.ReplaceFinished:
		departed := podset.Finished(seen, podset.Removed(step))
		return d.succeed(ctx, obj, seen, departed, podset.Replacements(obj.Name, seen, departed, n))
	case podset.CreatePods:
		return d.grow(ctx, obj, seen, podset.NewPods(obj.Name, seen, n))
	}
	return fmt.Errorf("podset has no step %s", step)
}

func (d Driver) shrink(ctx context.Context, obj *appv1.PodSet, seen podset.World, victims []podset.Pod) error {
	if err := d.unmoved(ctx, obj, seen); err != nil {
		return err
	}
	return d.remove(ctx, obj, victims)
}

func (d Driver) grow(ctx context.Context, obj *appv1.PodSet, seen podset.World, births []podset.NewPod) error {
	if err := d.unmoved(ctx, obj, seen); err != nil {
		return err
	}
	return d.create(ctx, obj, seen, births)
}

// succeed removes first: what has ended may be all that a quota has room for.
func (d Driver) succeed(
	ctx context.Context, obj *appv1.PodSet, seen podset.World, departed []podset.Pod, heirs []podset.NewPod,
) error {
	if err := d.unmoved(ctx, obj, seen); err != nil {
		return err
	}
	if err := d.remove(ctx, obj, departed); err != nil {
		return err
	}
	return d.create(ctx, obj, seen, heirs)
}

// remove deletes exactly these pods, not others of their names.
func (d Driver) remove(ctx context.Context, obj *appv1.PodSet, pods []podset.Pod) error {
	return d.hands.inParallel(len(pods), func(i int) error {
		p := shell(obj, pods[i])
		err := d.client.Delete(ctx, p, client.Preconditions{UID: &p.UID})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // somebody else was faster
		}
		if err != nil {
			return fmt.Errorf("cannot delete pod %q: %w", p.Name, err)
		}
		return nil
	})
}

// shell is enough of the pod for a request about it.
func shell(obj *appv1.PodSet, p podset.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: p.Name, UID: p.UID}}
}
