package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/governor-dev/governor/lifecycle"
)

// Find returns the existing object of the wanted kind and name, or nil if the name is
// free. The caller must not modify the object. Find reads an object that the cache does
// not show from the API server: it may have lost its label, or be newer than the cache. A
// name that the owner cannot have, or not yet, is a [ForeignError] or a [StillDeletingError].
func (a *Applier) Find(ctx context.Context, owner client.Object, wanted lifecycle.Object) (client.Object, error) {
	d, err := a.identify(owner, wanted)
	if err != nil {
		return nil, err
	}
	existing, key := d.newObject(), client.ObjectKey{Namespace: owner.GetNamespace(), Name: wanted.GetName()}
	err = a.client.Get(ctx, key, existing, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		existing = d.newObject()
		err = a.live.Get(ctx, key, existing)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the owner of %s %q: %w", d.kind, d.name(), err)
	}
	return existing, checkOwnership(a.app, owner, d, existing)
}

// identify is declare without the content, for a caller that only reads.
func (a *Applier) identify(owner client.Object, wanted lifecycle.Object) (declared, error) {
	sample, ok := wanted.(client.Object)
	if !ok {
		return declared{}, fmt.Errorf("%T is not an object", wanted)
	}
	return identified(a.client.Scheme(), owner, sample)
}

func identified(s *runtime.Scheme, owner, sample client.Object) (declared, error) {
	gvk, err := apiutil.GVKForObject(sample, s)
	if err != nil {
		return declared{}, err
	}
	ownerKind, err := apiutil.GVKForObject(owner, s)
	name := &unstructured.Unstructured{Object: map[string]any{}}
	name.SetName(sample.GetName())
	return declared{kind: gvk.Kind, group: gvk.Group, ownerKind: ownerKind.Kind, content: name, sample: sample}, err
}
