// Package apply creates and maintains the objects that an application declares.
//
// It uses server-side apply with one field manager, so fields that the application does
// not set belong to other managers and stay untouched. It writes only what would change:
// an unchanged object costs no request. It prunes an object that is no longer declared. It
// never touches an object of a declared name that another owner controls: that is a
// [ForeignError].
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/openapi"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/lifecycle"
)

// Manager is the field manager of every apply request.
const Manager = "governor"

// OwnerIndex is the cache index by the UID of the controlling owner. The cache of the
// Applier's client needs it for every owned kind.
const OwnerIndex = "governor.dev/owner"

// IndexOwner is the index function for OwnerIndex.
func IndexOwner(obj client.Object) []string {
	if c := metav1.GetControllerOf(obj); c != nil {
		return []string{string(c.UID)}
	}
	return nil
}

// Verb is the kind of a write.
type Verb string

const (
	// VerbCreated means that the object did not exist.
	VerbCreated Verb = "Created"
	// VerbConfigured means that the object existed and differed.
	VerbConfigured Verb = "Configured"
	// VerbPruned means that the object was no longer declared and was deleted.
	VerbPruned Verb = "Pruned"
)

// Change is one write.
type Change struct {
	Verb   Verb
	Kind   string
	Name   string
	Fields []string // the fields that differed, if the verb is Configured
	// Redeclared reports that the declaration differs from the one before. It is false for an
	// object that only an earlier operator process declared: its declaration is unknown.
	Redeclared bool
}

// String returns the change in short form: "Configured Deployment cache (spec.replicas)".
func (c Change) String() string {
	s := fmt.Sprintf("%s %s %s", c.Verb, c.Kind, c.Name)
	if len(c.Fields) == 0 {
		return s
	}
	return fmt.Sprintf("%s (%s)", s, summary(c.Fields))
}

// ForeignError reports that an object of a declared name is not the owner's.
type ForeignError struct {
	Kind  string
	Name  string
	Owner string // the kind and name of its controller; empty if it has none
}

// Error implements error.
func (e *ForeignError) Error() string {
	if e.Owner != "" {
		return fmt.Sprintf("%s %q exists and belongs to %s", e.Kind, e.Name, e.Owner)
	}
	return fmt.Sprintf("%s %q exists and was not made by Governor, or others removed its owner reference, which you can set again", e.Kind, e.Name)
}

// StillDeletingError reports that an earlier object of a declared name is still being deleted.
type StillDeletingError struct {
	Kind string
	Name string
	// Finalizers of other controllers that keep the object.
	Finalizers []string
}

// Error implements error.
func (e *StillDeletingError) Error() string {
	said := fmt.Sprintf("%s %q of an earlier time is still being deleted", e.Kind, e.Name)
	if len(e.Finalizers) == 0 {
		return said
	}
	return fmt.Sprintf("%s, and the finalizer %s keeps it: let its owner finish, or remove it with kubectl edit", said, strings.Join(e.Finalizers, ", "))
}

// goingError is the error of an object that is being deleted.
func goingError(kind string, existing client.Object) *StillDeletingError {
	return &StillDeletingError{Kind: kind, Name: existing.GetName(), Finalizers: ForeignFinalizers(existing)}
}

// ForeignFinalizers are those that Kubernetes' own garbage collection does not remove.
func ForeignFinalizers(obj metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
}

// Applier applies the objects of one application. It is safe for concurrent use for
// different owners.
type Applier struct {
	app     string
	client  client.Client
	live    client.Reader
	types   managedfields.TypeConverter
	tracker *readyourwrites.Tracker
	owned   []client.Object
	cache   appliedCache
	now     func() time.Time
}

// New returns an applier for the named application, which may own the given kinds. The
// client reads from the cache, and live reads from the API server. schemas provides the
// schemas of the custom resources among the kinds.
func New(
	app string, c client.Client, live client.Reader, tracker *readyourwrites.Tracker, owned []client.Object, schemas openapi.ClientWithContext,
	now func() time.Time,
) *Applier {
	return &Applier{
		app: app, client: c, live: live, tracker: tracker, owned: owned,
		types: newConverter(c.Scheme(), schemas), now: now,
	}
}

// Apply makes the wanted objects exist for the owner, in their order, and prunes the
// owner's other applied objects. It continues after an error, and returns all changes and
// all errors joined. It writes a wanted object with a resourceVersion only over that
// version.
func (a *Applier) Apply(ctx context.Context, owner client.Object, wanted []lifecycle.Object) ([]Change, error) {
	current, err := a.current(ctx, owner)
	if err != nil {
		return nil, err
	}
	var changes []Change
	var errs []error
	for _, obj := range wanted {
		change, err := a.ensure(ctx, owner, obj, current)
		if err != nil {
			errs = append(errs, a.failureOf(obj, err))
		}
		if change != nil {
			changes = append(changes, *change)
		}
	}
	pruned, err := a.prune(ctx, owner, current)
	a.forgetOthers(client.ObjectKeyFromObject(owner), wanted)
	return append(changes, pruned...), errors.Join(append(errs, err)...)
}

// forgetOthers drops the cached state of the owner's objects that are no longer wanted, also of those
// that another client deleted.
func (a *Applier) forgetOthers(owner types.NamespacedName, wanted []lifecycle.Object) {
	a.cache.removeIf(owner, func(id identity) bool {
		return !slices.ContainsFunc(wanted, func(obj lifecycle.Object) bool {
			if obj.GetName() != id.name {
				return false
			}
			gvk, err := apiutil.GVKForObject(obj, a.client.Scheme())
			return err == nil && gvk.Group == id.group && gvk.Kind == id.kind
		})
	})
}

// Forget drops the cached state of the owner.
func (a *Applier) Forget(owner types.NamespacedName) { a.cache.removeOwner(owner) }

// identity names an object within its namespace. Kinds of two groups may have the same name.
type identity struct{ group, kind, name string }

// String returns the identity as Kind/Name.
func (i identity) String() string { return i.kind + "/" + i.name }

// current returns the objects in the cache that the owner controls, without copying them.
func (a *Applier) current(ctx context.Context, owner client.Object) (map[identity]client.Object, error) {
	current := map[identity]client.Object{}
	if owner.GetUID() == "" {
		return current, nil // an object without a UID does not exist yet and owns nothing
	}
	for _, kind := range a.owned {
		list, of, err := listFor(a.client.Scheme(), kind)
		if err != nil {
			return nil, err
		}
		err = a.client.List(ctx, list, client.InNamespace(owner.GetNamespace()),
			client.MatchingFields{OwnerIndex: string(owner.GetUID())}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", of.Kind, err)
		}
		each(list, func(obj client.Object) { current[identity{of.Group, of.Kind, obj.GetName()}] = obj })
	}
	return current, nil
}

// ensure makes one object exist as wanted and removes it from current. What remains in
// current is to be pruned.
func (a *Applier) ensure(
	ctx context.Context, owner client.Object, wanted lifecycle.Object, current map[identity]client.Object,
) (*Change, error) {
	id, sum, err := a.fingerprint(wanted)
	if err != nil {
		return nil, err
	}
	existing := current[id]
	delete(current, id)
	switch {
	case existing == nil:
	case existing.GetDeletionTimestamp() != nil:
		return nil, goingError(id.kind, existing)
	case a.cache.isDue(client.ObjectKeyFromObject(owner), id, a.now()):
	case a.cache.unchanged(client.ObjectKeyFromObject(owner), id, existing, sum):
		return nil, nil
	}
	d, err := a.declare(owner, wanted)
	if err != nil {
		return nil, err
	}
	d.fingerprint = sum
	if existing == nil {
		return a.create(ctx, owner, d)
	}
	return a.compare(ctx, owner, d.over(existing), existing)
}

// compare writes the object if it differs from its declaration.
func (a *Applier) compare(ctx context.Context, owner client.Object, d declared, existing client.Object) (*Change, error) {
	existing, err := a.finishReplaceLists(ctx, owner, existing)
	if err != nil {
		return nil, err
	}
	fields, err := a.difference(d, existing)
	if err != nil {
		return nil, err
	}
	key, id := client.ObjectKeyFromObject(owner), d.identity()
	if len(fields) == 0 {
		a.cache.record(key, id, existing, d.fingerprint)
		return nil, nil
	}
	redeclared := a.cache.declaredOtherwise(key, id, d.fingerprint)
	written, err := a.write(ctx, owner, d, client.ForceOwnership)
	if apierrors.IsInvalid(err) {
		if refusedAsImmutable(err) && !hasPassword(d) {
			return a.recreate(ctx, owner, d, existing.GetUID())
		}
		written, err = a.replaceLists(ctx, owner, d, err)
	}
	if err != nil || written == existing.GetResourceVersion() {
		return nil, err
	}
	return &Change{Verb: VerbConfigured, Kind: d.kind, Name: d.name(), Fields: fields, Redeclared: redeclared}, nil
}

// CreateOnlyVersion is a resourceVersion that no object has: etcd's revision counter is at 1 before
// the first write. A wanted object with this version can only be created.
const CreateOnlyVersion = "1"

// create creates an object that the cache does not show as the owner's. The cache shows
// only the application's objects, so another object may have the name. A write over a
// version that no object has can only create: it takes one request and changes no existing
// object.
func (a *Applier) create(ctx context.Context, owner client.Object, d declared) (*Change, error) {
	createOnly := d
	createOnly.version = CreateOnlyVersion
	_, err := a.write(ctx, owner, createOnly)
	if !apierrors.IsConflict(err) {
		return created(d, err), err
	}
	return a.takeOver(ctx, owner, d)
}

// takeOver takes over an existing object of the owner that the cache does not show.
func (a *Applier) takeOver(ctx context.Context, owner client.Object, d declared) (*Change, error) {
	existing := d.newObject()
	err := a.live.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: d.name()}, existing)
	if err != nil {
		return nil, fmt.Errorf("cannot read the owner of %s %q: %w", d.kind, d.name(), err)
	}
	if err := checkOwnership(a.app, owner, d, existing); err != nil {
		return nil, err
	}
	if err := checkOwnerNotDeleting(ctx, a.live, a.client.Scheme(), owner, existing); err != nil {
		return nil, err
	}
	if _, err = a.write(ctx, owner, d, client.ForceOwnership); err != nil {
		return nil, err
	}
	return &Change{Verb: VerbConfigured, Kind: d.kind, Name: d.name(), Fields: []string{"metadata.labels"}}, nil
}

func created(d declared, err error) *Change {
	if err != nil {
		return nil
	}
	return &Change{Verb: VerbCreated, Kind: d.kind, Name: d.name()}
}

// write applies the object and returns its new resourceVersion.
func (a *Applier) write(ctx context.Context, owner client.Object, d declared, opts ...client.ApplyOption) (string, error) {
	u := d.content.DeepCopy()
	if d.version != "" {
		u.SetResourceVersion(d.version)
	}
	err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), append(opts, client.FieldOwner(Manager))...)
	if err != nil {
		return "", fmt.Errorf("cannot apply %s %q: %w", d.kind, d.name(), err)
	}
	written := d.newObject()
	written.SetName(u.GetName())
	written.SetNamespace(u.GetNamespace())
	written.SetUID(u.GetUID())
	written.SetResourceVersion(u.GetResourceVersion())
	key := client.ObjectKeyFromObject(owner)
	a.tracker.Wrote(key, written)
	if fields := a.overriddenFields(d, u); len(fields) > 0 {
		a.cache.recordOverridden(key, d.identity(), written, d.fingerprint, fields, a.now())
	} else {
		a.cache.record(key, d.identity(), written, d.fingerprint)
	}
	return u.GetResourceVersion(), nil
}

// prune deletes the applied objects that are left in current.
func (a *Applier) prune(ctx context.Context, owner client.Object, current map[identity]client.Object) ([]Change, error) {
	var changes []Change
	var errs []error
	for id, obj := range current {
		if !isApplied(obj) || obj.GetDeletionTimestamp() != nil {
			continue
		}
		uid := obj.GetUID()
		err := a.client.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("cannot prune %s %q: %w", id.kind, id.name, err))
			continue
		}
		a.tracker.Deleted(client.ObjectKeyFromObject(owner), obj)
		changes = append(changes, Change{Verb: VerbPruned, Kind: id.kind, Name: id.name, Redeclared: true})
	}
	sortChanges(changes)
	return changes, errors.Join(errs...)
}

// listFor returns an empty list of the kind as the cache fills it, and the kind.
func listFor(s *runtime.Scheme, kind client.Object) (client.ObjectList, schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(kind, s)
	if err != nil {
		return nil, gvk, err
	}
	listKind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	if _, ok := kind.(runtime.Unstructured); ok {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(listKind)
		return list, gvk, nil
	}
	obj, err := s.New(listKind)
	if err != nil {
		return nil, gvk, err
	}
	list, ok := obj.(client.ObjectList)
	if !ok {
		return nil, gvk, fmt.Errorf("%s is not a list", listKind)
	}
	return list, gvk, nil
}
