package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// listManager is the field manager of the rare repair that replaces whole lists. It owns
// fields only until that repair is done.
const listManager = Manager + "-lists"

// replaceLists repairs drift that server-side apply cannot repair. Another manager owns a
// list entry whose key it changed, and the declared entry beside it makes the object
// invalid. So replaceLists replaces the declared lists as a whole and applies the object
// again.
func (a *Applier) replaceLists(ctx context.Context, owner client.Object, d declared, invalid error) (string, error) {
	raw, err := d.content.MarshalJSON()
	if err != nil {
		return "", err
	}
	target := d.newObject()
	target.SetName(d.name())
	target.SetNamespace(owner.GetNamespace())
	err = a.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(listManager))
	if err != nil {
		return "", errors.Join(invalid, err)
	}
	if err := a.transferOwnership(ctx, target); err != nil {
		return "", err
	}
	d.version = "" // the merge patch just changed the version
	return a.write(ctx, owner, d, client.ForceOwnership)
}

// transferOwnership moves the fields of listManager to Manager. Fields left with
// listManager would stay in the object when they are no longer declared.
func (a *Applier) transferOwnership(ctx context.Context, replaced client.Object) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(replaced, sets.New(listManager), Manager)
	if err == nil {
		err = a.client.Patch(ctx, replaced, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(Manager))
	}
	if err != nil {
		return fmt.Errorf("cannot finish the repair of %q: %w", replaced.GetName(), err)
	}
	return nil
}

// finishReplaceLists completes a list replacement that an earlier operator process did not
// complete, and returns the resulting object.
func (a *Applier) finishReplaceLists(ctx context.Context, owner, existing client.Object) (client.Object, error) {
	interrupted := slices.ContainsFunc(existing.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == listManager })
	if !interrupted {
		return existing, nil
	}
	finished := existing.DeepCopyObject().(client.Object) // an object of the cache must not change
	err := a.transferOwnership(ctx, finished)
	if err == nil {
		a.tracker.Wrote(client.ObjectKeyFromObject(owner), finished)
	}
	return finished, err
}

// refusedAsImmutable reports whether the API server refused a write only because the content of
// the Secret or ConfigMap is immutable. An object that is also invalid for another reason could
// be deleted, but not created again (pkg/apis/core/validation, ValidateSecretUpdate).
func refusedAsImmutable(err error) bool {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		return false
	}
	details := refusal.Status().Details
	other := slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeForbidden || !slices.Contains([]string{"immutable", "data", "binaryData"}, c.Field)
	})
	content := details.Group == "" && (details.Kind == "Secret" || details.Kind == "ConfigMap")
	return content && len(details.Causes) > 0 && !other
}

// hasPassword reports whether the object is a Secret with a password. It is not deleted to be created again: an operator that
// ends in between would make another one.
func hasPassword(d declared) bool {
	return d.content.GetAnnotations()[lifecycle.AnnotationPassword] != ""
}

// recreate deletes the owner's object of that UID and creates it as declared. If the operator
// ends between the two requests, the next reconcile creates the object.
func (a *Applier) recreate(ctx context.Context, owner client.Object, d declared, uid types.UID) (*Change, error) {
	target := d.newObject()
	target.SetName(d.name())
	target.SetNamespace(owner.GetNamespace())
	err := a.client.Delete(ctx, target, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot replace the immutable %s %q: %w", d.kind, d.name(), err)
	}
	return a.create(ctx, owner, d)
}
