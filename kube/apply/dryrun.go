package apply

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/governor-dev/governor/lifecycle"
)

// Prediction is a change that Apply would make.
type Prediction struct {
	Change
	// Values are the values of the changed fields, in the same order. A Secret has none.
	Values []Values
}

// Values are the current and the new value of a field, as JSON; empty if the field is
// absent.
type Values struct{ From, To string }

// DryRun returns what [Applier.Apply] would change, and writes nothing. An object that
// Apply would refuse to write is among the errors.
func (a *Applier) DryRun(ctx context.Context, owner client.Object, wanted []lifecycle.Object) ([]Prediction, error) {
	current, err := a.current(ctx, owner)
	if err != nil {
		return nil, err
	}
	var changes []Prediction
	var errs []error
	for _, obj := range wanted {
		f, err := a.dryRun(ctx, owner, obj, current)
		if err != nil {
			errs = append(errs, a.failureOf(obj, err))
		} else if f != nil {
			changes = append(changes, *f)
		}
	}
	return append(changes, toPrune(current)...), errors.Join(errs...)
}

// PlanDeletion returns the applied objects that Kubernetes deletes together with the
// owner.
func (a *Applier) PlanDeletion(ctx context.Context, owner client.Object) ([]Prediction, error) {
	current, err := a.current(ctx, owner)
	return toPrune(current), err
}

func (a *Applier) dryRun(
	ctx context.Context, owner client.Object, wanted lifecycle.Object, current map[identity]client.Object,
) (*Prediction, error) {
	d, err := a.declare(owner, wanted)
	if err != nil {
		return nil, err
	}
	id := d.identity()
	existing := current[id]
	delete(current, id)
	if existing == nil {
		found, err := a.Find(ctx, owner, wanted)
		if err != nil || found != nil {
			return relabeled(d), err
		}
		return &Prediction{Change: Change{Verb: VerbCreated, Kind: d.kind, Name: d.name()}}, nil
	}
	if existing.GetDeletionTimestamp() != nil {
		return nil, goingError(d.kind, existing)
	}
	return a.dryRunUpdate(d.over(existing), existing)
}

// relabeled returns the change of an object of the owner that has lost its labels.
func relabeled(d declared) *Prediction {
	return &Prediction{Change: Change{Verb: VerbConfigured, Kind: d.kind, Name: d.name(), Fields: []string{"metadata.labels"}}}
}

func (a *Applier) dryRunUpdate(d declared, existing client.Object) (*Prediction, error) {
	set, err := a.changed(d, existing)
	if err != nil || set.Empty() {
		return nil, err
	}
	f := &Prediction{Change: Change{Verb: VerbConfigured, Kind: d.kind, Name: d.name(), Fields: paths(set)}}
	if d.kind == "Secret" {
		return f, nil
	}
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(existing)
	if err != nil {
		return nil, err
	}
	byPath := map[string]Values{}
	set.Leaves().Iterate(func(p fieldpath.Path) {
		byPath[pathString(p)] = Values{From: valueAt(live, p), To: valueAt(d.content.Object, p)}
	})
	for _, field := range f.Fields {
		f.Values = append(f.Values, byPath[field])
	}
	return f, nil
}

// valueAt returns the object's value at the path, as JSON; empty if there is none.
func valueAt(object any, p fieldpath.Path) string {
	for _, element := range p {
		if object = child(object, element); object == nil {
			return ""
		}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return ""
	}
	return string(raw)
}

func child(object any, element fieldpath.PathElement) any {
	if fields, ok := object.(map[string]any); ok && element.FieldName != nil {
		return fields[*element.FieldName]
	}
	items, _ := object.([]any)
	for i, item := range items {
		if matches(item, i, element) {
			return item
		}
	}
	return nil
}

// matches reports whether the path element selects the list item.
func matches(item any, i int, element fieldpath.PathElement) bool {
	switch {
	case element.Index != nil:
		return *element.Index == i
	case element.Value != nil:
		return value.Equals(value.NewValueInterface(item), *element.Value)
	case element.Key != nil:
		fields, _ := item.(map[string]any)
		for _, key := range *element.Key {
			if !value.Equals(value.NewValueInterface(fields[key.Name]), key.Value) {
				return false
			}
		}
		return fields != nil
	}
	return false
}

func isApplied(obj client.Object) bool { return obj.GetLabels()[lifecycle.LabelApplied] != "" }

// toPrune returns the prune of every applied object in current.
func toPrune(current map[identity]client.Object) []Prediction {
	var changes []Change
	for id, obj := range current {
		if isApplied(obj) && obj.GetDeletionTimestamp() == nil {
			changes = append(changes, Change{Verb: VerbPruned, Kind: id.kind, Name: id.name})
		}
	}
	sortChanges(changes)
	var all []Prediction
	for _, c := range changes {
		all = append(all, Prediction{Change: c})
	}
	return all
}
