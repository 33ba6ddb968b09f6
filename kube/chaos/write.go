package chaos

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applier is the field manager of server-side applies: a tool beside the user.
const applier = "chaos-apply"

// applyForced applies the patch as a manifest of its own, and takes the fields from other managers. The
// undoing gives the fields their former values; the manager keeps them.
func applyForced(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	manifest := &unstructured.Unstructured{}
	if err := json.Unmarshal(w.patch(), &manifest.Object); err != nil {
		return nil, err
	}
	manifest.SetGroupVersionKind(o.GroupVersionKind())
	manifest.SetNamespace(o.GetNamespace())
	manifest.SetName(o.GetName())
	var undo undoing
	if before := o.DeepCopy(); w.what.Lasts {
		undo = func(ctx context.Context) error { return w.takeBack(ctx, before) }
	}
	return undo, w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner(applier), client.ForceOwnership)
}

// clientApply writes the object back as kubectl does that once created it by a client-side apply: with the
// manifest in an annotation, and without labels, finalizers and status.
func clientApply(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	return nil, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := w.self(ctx, w.client, o.GroupVersionKind())
		if err != nil {
			return err
		}
		manifest := fresh(now)
		text, err := json.Marshal(manifest.Object)
		if err != nil {
			return err
		}
		manifest.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(text)})
		manifest.SetResourceVersion(now.GetResourceVersion())
		return w.client.Update(ctx, manifest, w.updater()...)
	})
}

// fresh is the object as a user's manifest has it.
func fresh(o *unstructured.Unstructured) *unstructured.Unstructured {
	manifest := &unstructured.Unstructured{Object: map[string]any{"spec": o.DeepCopy().Object["spec"]}}
	manifest.SetGroupVersionKind(o.GroupVersionKind())
	manifest.SetNamespace(o.GetNamespace())
	manifest.SetName(o.GetName())
	return manifest
}

// recreate deletes the object, and creates it again as soon as its name is free.
func recreate(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	manifest := fresh(o)
	if err := w.client.Delete(ctx, o, client.PropagationPolicy(w.what.Detail)); err != nil {
		return nil, err
	}
	return nil, wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := w.client.Create(ctx, manifest.DeepCopy(), w.creator()...)
		if apierrors.IsAlreadyExists(err) {
			return false, nil
		}
		return err == nil, err
	})
}

func (w work) updater() (all []client.UpdateOption) {
	if w.Manager != "" {
		all = append(all, client.FieldOwner(w.Manager))
	}
	return all
}

func (w work) creator() (all []client.CreateOption) {
	if w.Manager != "" {
		all = append(all, client.FieldOwner(w.Manager))
	}
	return all
}
