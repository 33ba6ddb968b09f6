package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/governor-dev/governor/lifecycle"
)

// Object applies a single object for the owner, for a Step. Nothing prunes the object later,
// and only another Step changes it. An object of that name with another owner stays
// untouched: the result is a [ForeignError] or a [StillDeletingError].
func Object(ctx context.Context, c client.Client, live client.Reader, owner client.Object, wanted lifecycle.Object) error {
	_, err := Answer(ctx, c, live, owner, wanted)
	return err
}

// Answer is [Object], and returns what the API server has stored, or would store with
// [client.DryRunAll]: admission webhooks and policies may have changed it.
func Answer(
	ctx context.Context, c client.Client, live client.Reader, owner client.Object, wanted lifecycle.Object, options ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	d, err := declare(c.Scheme(), owner, wanted.DeepCopyObject().(client.Object))
	if err != nil {
		return nil, err
	}
	options = append(options, client.FieldOwner(Manager))
	existing := d.newObject()
	err = live.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: d.name()}, existing)
	switch {
	case apierrors.IsNotFound(err):
		d.content.SetResourceVersion(CreateOnlyVersion)
	case err != nil:
		return nil, fmt.Errorf("cannot read the owner of %s %q: %w", d.kind, d.name(), err)
	default:
		if err := checkOwnership(wanted.GetLabels()[lifecycle.LabelApp], owner, d, existing); err != nil {
			return nil, err
		}
		if err := checkOwnerNotDeleting(ctx, live, c.Scheme(), owner, existing); err != nil {
			return nil, err
		}
		options = append(options, client.ForceOwnership)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(d.content), options...); err != nil {
		return nil, fmt.Errorf("cannot apply %s %q: %w", d.kind, d.name(), err)
	}
	return d.content, nil
}

// checkOwnerNotDeleting returns an error if the object has no controller because its owner
// is being deleted. A deletion that orphans removes the owner references, and the cache
// may not show the deletion yet. An adoption would then hand the object to the garbage
// collector. Kubernetes' own controllers check the API server in the same way
// (RecheckDeletionTimestamp).
func checkOwnerNotDeleting(ctx context.Context, live client.Reader, s *runtime.Scheme, owner, existing client.Object) error {
	if metav1.GetControllerOf(existing) != nil {
		return nil
	}
	gvk, err := apiutil.GVKForObject(owner, s)
	if err != nil {
		return err
	}
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(gvk)
	err = live.Get(ctx, client.ObjectKeyFromObject(owner), now)
	if err == nil && now.UID == owner.GetUID() && now.DeletionTimestamp == nil {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read whether the owner of %q is being deleted: %w", existing.GetName(), err)
	}
	return &OwnerDeletingError{Name: existing.GetName(), OwnerKind: gvk.Kind, Owner: owner.GetName()}
}

// OwnerDeletingError says that an object without an owner is left alone, because the owner that would adopt it is being deleted:
// the garbage collector would delete the object, which may have been orphaned on purpose.
type OwnerDeletingError struct {
	Name, OwnerKind, Owner string
}

func (e *OwnerDeletingError) Error() string {
	return fmt.Sprintf("%q has lost its owner reference, and %s %q is being deleted", e.Name, e.OwnerKind, e.Owner)
}

// Taken returns why the owner cannot apply an object over the existing one of its name: a
// [ForeignError] or a [StillDeletingError]; nil if it can.
func Taken(s *runtime.Scheme, app string, owner, existing client.Object) error {
	d, err := identified(s, owner, existing)
	if err != nil {
		return err
	}
	return checkOwnership(app, owner, d, existing)
}

// checkOwnership returns an error unless the existing object is the owner's. Either the owner
// controls it and its labels are lost, or it has no controller and carries the labels of
// an earlier object of the same name (deleted with --cascade=orphan, or restored from a
// backup).
func checkOwnership(app string, owner client.Object, d declared, existing client.Object) error {
	if existing.GetDeletionTimestamp() != nil {
		return goingError(d.kind, existing)
	}
	ref := metav1.GetControllerOf(existing)
	labels := existing.GetLabels()
	switch {
	case ref == nil && labels[lifecycle.LabelApp] == app && labels[lifecycle.LabelInstance] == owner.GetName():
		return nil
	case ref == nil:
		return &ForeignError{Kind: d.kind, Name: d.name()}
	case ref.UID == owner.GetUID():
		return nil
	case ref.Name == owner.GetName() && ref.Kind == d.ownerKind:
		return goingError(d.kind, existing)
	}
	return &ForeignError{Kind: d.kind, Name: d.name(), Owner: ref.Kind + " " + ref.Name}
}
