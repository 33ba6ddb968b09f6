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

// Act implements lifecycle.Driver. The world determines the pods of the step, as in the
// planner.
func (d Driver) Act(ctx context.Context, obj *appv1.PodSet, seen podset.World, step lifecycle.Step) error {
	args, err := lifecycle.ArgsOf[podset.Args](step)
	if err != nil {
		return err
	}
	switch n := args.Pods; step.Name {
	case podset.Release:
		return d.release(ctx, obj, seen.Strays())
	case podset.Adopt:
		return d.adopt(ctx, obj, seen.Orphans())
	case podset.DeletePods:
		return d.deletePods(ctx, obj, seen, podset.PodsToDelete(seen.Actives(), n))
	case podset.ReplaceOutdated:
		return d.deletePods(ctx, obj, seen, podset.PodsToDelete(seen.Outdated(podset.Fingerprint(obj)), n))
	case podset.ReplaceFinished:
		finished := podset.Finished(seen, args.Finished)
		return d.replaceFinished(ctx, obj, seen, finished, podset.Replacements(obj.Name, seen, finished, n))
	case podset.CreatePods:
		return d.createPods(ctx, obj, seen, podset.NewPods(obj.Name, seen, n))
	}
	return fmt.Errorf("podset has no step %s", step)
}

func (d Driver) deletePods(ctx context.Context, obj *appv1.PodSet, seen podset.World, pods []podset.Pod) error {
	if err := d.checkUnchanged(ctx, obj, seen); err != nil {
		return err
	}
	return d.remove(ctx, obj, pods)
}

func (d Driver) createPods(ctx context.Context, obj *appv1.PodSet, seen podset.World, pods []podset.NewPod) error {
	if err := d.checkUnchanged(ctx, obj, seen); err != nil {
		return err
	}
	return d.create(ctx, obj, seen, pods)
}

// replaceFinished deletes first: the finished pods may use up a quota.
func (d Driver) replaceFinished(
	ctx context.Context, obj *appv1.PodSet, seen podset.World, finished []podset.Pod, replacements []podset.NewPod,
) error {
	if err := d.checkUnchanged(ctx, obj, seen); err != nil {
		return err
	}
	if err := d.remove(ctx, obj, finished); err != nil {
		return err
	}
	return d.create(ctx, obj, seen, replacements)
}

// remove deletes exactly these pods, not new pods of the same names.
func (d Driver) remove(ctx context.Context, obj *appv1.PodSet, pods []podset.Pod) error {
	return d.requests.inParallel(len(pods), func(i int) error {
		p := ref(obj, pods[i])
		err := d.client.Delete(ctx, p, client.Preconditions{UID: &p.UID})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // it is already deleted or replaced
		}
		if err != nil {
			return fmt.Errorf("cannot delete pod %q: %w", p.Name, err)
		}
		return nil
	})
}

// ref returns the metadata that identifies the pod in a request.
func ref(obj *appv1.PodSet, p podset.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: p.Name, UID: p.UID}}
}
