package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/governor-dev/governor/lifecycle"
)

// Drift is a change of an applied object by another manager.
type Drift struct {
	Kind string
	Name string
	// Fields are the fields that were changed or removed; none if the object is missing.
	Fields []string
	// Managers are the field managers that own the fields now, or an admission webhook; none if the
	// API server records no manager, as for a removed field.
	Managers []string
}

// String returns the drift as a part of a sentence.
func (d Drift) String() string {
	if len(d.Fields) == 0 {
		return fmt.Sprintf("%s %s is missing", d.Kind, d.Name)
	}
	s := fmt.Sprintf("%s %s (%s)", d.Kind, d.Name, summary(d.Fields))
	if len(d.Managers) > 0 {
		s += " by " + strings.Join(d.Managers, ", ")
	}
	return s
}

// FindDrift returns what other managers changed in the wanted objects. It writes nothing and
// reads only the cache. An object that the cache does not show is missing if it was there
// before, or if provided is true.
func (a *Applier) FindDrift(ctx context.Context, owner client.Object, wanted []lifecycle.Object, provided bool) ([]Drift, error) {
	current, err := a.current(ctx, owner)
	if err != nil {
		return nil, err
	}
	var all []Drift
	var errs []error
	for _, obj := range wanted {
		d, err := a.drift(owner, obj, current, provided)
		if err != nil {
			errs = append(errs, err)
		} else if d != nil {
			all = append(all, *d)
		}
	}
	return all, errors.Join(errs...)
}

func (a *Applier) drift(owner client.Object, wanted lifecycle.Object, current map[identity]client.Object, provided bool) (*Drift, error) {
	id, sum, err := a.fingerprint(wanted)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(owner)
	existing := current[id]
	if existing == nil {
		if _, known := a.cache.get(key, id); !known && !provided {
			return nil, nil
		}
		return &Drift{Kind: id.kind, Name: id.name}, nil
	}
	if a.cache.unchanged(key, id, existing, sum) {
		return nil, nil
	}
	d, err := a.declare(owner, wanted)
	if err != nil {
		return nil, err
	}
	d = d.over(existing)
	d.fingerprint = sum
	foreign, err := a.foreignFields(key, d, existing)
	if err != nil || foreign.Empty() {
		return nil, err
	}
	return driftOf(d, existing, foreign), nil
}

// ApplyAround is Apply without the repair of drift: it keeps what other managers changed,
// and returns those changes too. It applies a field whose declaration has changed in any
// case. provided names the objects that existed before a restart, in the form of Names.
// Objects with lifecycle.AnnotationDrift are applied as in Apply.
func (a *Applier) ApplyAround(ctx context.Context, owner client.Object, wanted []lifecycle.Object, provided []string) ([]Change, []Drift, error) {
	current, err := a.current(ctx, owner)
	if err != nil {
		return nil, nil, err
	}
	var changes []Change
	var drifts []Drift
	var errs []error
	for _, obj := range wanted {
		change, drift, err := a.applyAround(ctx, owner, obj, current, provided)
		if err != nil {
			errs = append(errs, a.failureOf(obj, err))
		}
		if change != nil {
			changes = append(changes, *change)
		}
		if drift != nil {
			drifts = append(drifts, *drift)
		}
	}
	pruned, err := a.prune(ctx, owner, current)
	return append(changes, pruned...), drifts, errors.Join(append(errs, err)...)
}

// Names returns the objects as Kind/Name, sorted.
func (a *Applier) Names(objects []lifecycle.Object) ([]string, error) {
	var all []string
	for _, obj := range objects {
		gvk, err := apiutil.GVKForObject(obj, a.client.Scheme())
		if err != nil {
			return nil, err
		}
		all = append(all, identity{gvk.Group, gvk.Kind, obj.GetName()}.String())
	}
	slices.Sort(all)
	return all, nil
}

func (a *Applier) applyAround(
	ctx context.Context, owner client.Object, wanted lifecycle.Object, current map[identity]client.Object, provided []string,
) (*Change, *Drift, error) {
	id, sum, err := a.fingerprint(wanted)
	if err != nil {
		return nil, nil, err
	}
	key := client.ObjectKeyFromObject(owner)
	existing := current[id]
	n, known := a.cache.get(key, id)
	if existing == nil && !alwaysRepaired(wanted) && (known && n.sum == sum || !known && slices.Contains(provided, id.String())) {
		return nil, &Drift{Kind: id.kind, Name: id.name}, nil
	}
	if existing == nil || existing.GetDeletionTimestamp() != nil || alwaysRepaired(wanted) || a.cache.unchanged(key, id, existing, sum) {
		change, err := a.ensure(ctx, owner, wanted, current)
		return change, nil, err
	}
	delete(current, id)
	d, err := a.declare(owner, wanted)
	if err != nil {
		return nil, nil, err
	}
	d = d.over(existing)
	d.fingerprint = sum
	foreign, err := a.foreignFields(key, d, existing)
	if err != nil {
		return nil, nil, err
	}
	if foreign.Empty() {
		change, err := a.compare(ctx, owner, d, existing)
		return change, nil, err
	}
	change, err := a.applyExcept(ctx, owner, d, existing, foreign)
	return change, driftOf(d, existing, foreign), err
}

func alwaysRepaired(wanted lifecycle.Object) bool {
	return wanted.GetAnnotations()[lifecycle.AnnotationDrift] == lifecycle.DriftRepair
}

// applyExcept applies all fields except the foreign ones.
func (a *Applier) applyExcept(ctx context.Context, owner client.Object, d declared, existing client.Object, foreign *fieldpath.Set) (*Change, error) {
	all, err := a.changed(d, existing)
	if err != nil {
		return nil, err
	}
	key, id := client.ObjectKeyFromObject(owner), d.identity()
	own := all.Leaves().Difference(foreign)
	var change *Change
	if !own.Empty() {
		rest, err := a.without(d, foreign)
		if err != nil {
			return nil, err
		}
		if _, err := a.write(ctx, owner, rest, client.ForceOwnership); err != nil {
			return nil, err
		}
		change = &Change{Verb: VerbConfigured, Kind: d.kind, Name: d.name(), Fields: paths(own)}
	}
	a.cache.recordDrift(key, id, existing.GetUID(), d)
	return change, nil
}

// without returns the declaration without the fields.
func (a *Applier) without(d declared, fields *fieldpath.Set) (declared, error) {
	whole, err := a.types.ObjectToTyped(d.content)
	if err != nil {
		return d, err
	}
	rest, ok := whole.RemoveItems(fields).AsValue().Unstructured().(map[string]any)
	if !ok {
		return d, fmt.Errorf("%s %q cannot be applied in part", d.kind, d.name())
	}
	d.content = &unstructured.Unstructured{Object: rest}
	return d, nil
}

// foreignFields returns the fields that another manager changed. If the declaration is the
// one that the object last matched, that is every difference. Otherwise (after a restart,
// or with another declaration) it is every field that only other managers own now and whose
// declaration has not changed. A field that Manager still owns has the value that it applied.
// Another manager that owns it too has set the same value, so a difference is a new declaration.
func (a *Applier) foreignFields(key types.NamespacedName, d declared, existing client.Object) (*fieldpath.Set, error) {
	all, err := a.changed(d, existing)
	if err != nil || all.Empty() {
		return all, err
	}
	n, known := a.cache.get(key, d.identity())
	if known && n.sum == d.fingerprint && n.uid == existing.GetUID() {
		return all.Leaves(), nil
	}
	others, err := ownedOnlyByOthers(existing)
	if err != nil {
		return nil, err
	}
	foreign := others.Intersection(all.Leaves())
	if n.content == nil || foreign.Empty() {
		return foreign, nil
	}
	redeclared, err := a.redeclared(n.content, d.content)
	if err != nil {
		return nil, err
	}
	return foreign.Difference(redeclared), nil
}

// redeclared returns the fields in which the two declarations differ.
func (a *Applier) redeclared(before, now *unstructured.Unstructured) (*fieldpath.Set, error) {
	was, err := a.types.ObjectToTyped(before)
	if err != nil {
		return nil, err
	}
	is, err := a.types.ObjectToTyped(now)
	if err != nil {
		return nil, err
	}
	c, err := was.Compare(is)
	if err != nil {
		return nil, err
	}
	return c.Added.Union(c.Modified).Union(c.Removed), nil
}

func isApplyEntry(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == Manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

func ownedOnlyByOthers(obj client.Object) (*fieldpath.Set, error) {
	ours, err := ownedFields(obj)
	if err != nil {
		return nil, err
	}
	owned := &fieldpath.Set{}
	for _, entry := range obj.GetManagedFields() {
		if isApplyEntry(entry) || entry.FieldsV1 == nil {
			continue
		}
		some, err := fieldsOf(entry)
		if err != nil {
			return nil, fmt.Errorf("cannot read the managed fields of %q: %w", obj.GetName(), err)
		}
		owned = owned.Union(some)
	}
	return owned.Leaves().Difference(ours.Leaves()), nil
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	some := &fieldpath.Set{}
	return some, some.FromJSON(entry.FieldsV1.GetRawReader())
}

// driftOf names the fields and the managers that own them.
func driftOf(d declared, existing client.Object, foreign *fieldpath.Set) *Drift {
	drift := &Drift{Kind: d.kind, Name: d.name(), Fields: paths(foreign)}
	for _, entry := range existing.GetManagedFields() {
		if isApplyEntry(entry) || entry.FieldsV1 == nil {
			continue
		}
		if some, err := fieldsOf(entry); err == nil && !some.Leaves().Intersection(foreign).Empty() {
			drift.Managers = append(drift.Managers, entry.Manager)
		}
	}
	slices.Sort(drift.Managers)
	drift.Managers = slices.Compact(drift.Managers)
	return drift
}
