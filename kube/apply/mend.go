package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listManager is the field manager of the rare repair that replaces whole lists, until
// that repair is done.
const listManager = Manager + "-mend"

// replaceLists repairs drift that server-side apply cannot: an entry of a list whose key
// somebody changed is theirs, and ours beside it makes the object invalid. So the
// lists that we declare are replaced as a whole, and then applied again.
func (a *Applier) replaceLists(ctx context.Context, owner client.Object, d declared, invalid error) (string, error) {
	raw, err := d.content.MarshalJSON()
	if err != nil {
		return "", err
	}
	target := d.blank()
	target.SetName(d.name())
	target.SetNamespace(owner.GetNamespace())
	err = a.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(listManager))
	if err != nil {
		return "", errors.Join(invalid, err)
	}
	if err := a.transferOwnership(ctx, target); err != nil {
		return "", err
	}
	d.version = "" // it was just written
	return a.write(ctx, owner, d, client.ForceOwnership)
}

// transferOwnership hands the mender's fields to the manager. Left with the mender, they
// would stay in the object when they are no longer declared.
func (a *Applier) transferOwnership(ctx context.Context, mended client.Object) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(mended, sets.New(listManager), Manager)
	if err == nil {
		err = a.client.Patch(ctx, mended, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(Manager))
	}
	if err != nil {
		return fmt.Errorf("cannot finish the repair of %q: %w", mended.GetName(), err)
	}
	return nil
}

// finish does what is left of a repair that an operator did not live to finish, and
// returns the object as it is then.
func (a *Applier) finish(ctx context.Context, owner, existing client.Object) (client.Object, error) {
	half := slices.ContainsFunc(existing.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == listManager })
	if !half {
		return existing, nil
	}
	finished := existing.DeepCopyObject().(client.Object) // the cache's own must not change
	err := a.transferOwnership(ctx, finished)
	if err == nil {
		a.tracker.Wrote(client.ObjectKeyFromObject(owner), finished)
	}
	return finished, err
}

// immutable reports whether nobody can change the object's content, and its UID.
func immutable(obj client.Object) (types.UID, bool) {
	var is *bool
	switch o := obj.(type) {
	case *corev1.Secret:
		is = o.Immutable
	case *corev1.ConfigMap:
		is = o.Immutable
	}
	return obj.GetUID(), is != nil && *is
}

// renew deletes the owner's object of that UID and creates it as declared. If the operator
// ends between the two, the next turn creates what is missing.
func (a *Applier) renew(ctx context.Context, owner client.Object, d declared, uid types.UID) (*Change, error) {
	target := d.blank()
	target.SetName(d.name())
	target.SetNamespace(owner.GetNamespace())
	err := a.client.Delete(ctx, target, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot renew the immutable %s %q: %w", d.kind, d.name(), err)
	}
	return a.claim(ctx, owner, d)
}
