// Package dynamic has custom resources of kinds without a Go type, for applications whose kinds
// are known only when they run, such as those that a webhook operates.
//
//	engine.App[*dynamic.Object, World]{Name: "rings", New: dynamic.New(kind), ...}
package dynamic

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The fields of a status that the engine writes, as the API conventions name them.
const (
	fieldStatus             = "status"
	fieldObservedGeneration = "observedGeneration"
	fieldConditions         = "conditions"
)

// Object is a custom resource. Its content has all fields except the two of the status that the
// engine writes, which are fields of the Object. So a Planner may replace the status in the
// content as a whole. The JSON has all of them together.
//
// The schema of the kind must have status.observedGeneration and status.conditions: the API
// server drops fields that it does not know, and the engine would write them again and again.
type Object struct {
	unstructured.Unstructured

	// ObservedGeneration is status.observedGeneration.
	ObservedGeneration int64
	// Conditions is status.conditions.
	Conditions []metav1.Condition
}

// New returns the constructor of objects of the kind.
func New(kind schema.GroupVersionKind) func() *Object {
	return func() *Object {
		o := &Object{}
		o.SetGroupVersionKind(kind)
		return o
	}
}

// StatusFields implements lifecycle.Resource.
func (o *Object) StatusFields() (*int64, *[]metav1.Condition) {
	return &o.ObservedGeneration, &o.Conditions
}

// Status returns the status without the fields that the engine writes. It is not a copy, and nil
// if there is none.
func (o *Object) Status() map[string]any {
	status, _ := o.Object[fieldStatus].(map[string]any)
	return status
}

// SetStatus replaces the status except for the fields that the engine writes.
func (o *Object) SetStatus(status map[string]any) {
	rest := maps.Clone(status)
	delete(rest, fieldObservedGeneration)
	delete(rest, fieldConditions)
	if o.Object == nil {
		o.Object = map[string]any{}
	}
	if o.Object[fieldStatus] = rest; len(rest) == 0 {
		delete(o.Object, fieldStatus)
	}
}

// UnstructuredContent implements runtime.Unstructured. It returns the whole object, of which only
// the fields below the first level are shared with it.
func (o *Object) UnstructuredContent() map[string]any {
	content := maps.Clone(o.Object)
	if content == nil {
		content = map[string]any{}
	}
	status := maps.Clone(o.Status())
	if status == nil {
		status = map[string]any{}
	}
	if o.ObservedGeneration != 0 {
		status[fieldObservedGeneration] = o.ObservedGeneration
	}
	if len(o.Conditions) > 0 {
		status[fieldConditions] = encoded(o.Conditions)
	}
	if len(status) > 0 {
		content[fieldStatus] = status
	}
	return content
}

// SetUnstructuredContent implements runtime.Unstructured. It changes nothing in the content.
func (o *Object) SetUnstructuredContent(content map[string]any) {
	o.Object = maps.Clone(content)
	status := o.Status()
	o.ObservedGeneration, o.Conditions = generation(status[fieldObservedGeneration]), decoded(status[fieldConditions])
	o.SetStatus(status)
}

// NewEmptyInstance implements runtime.Unstructured.
func (o *Object) NewEmptyInstance() runtime.Unstructured { return New(o.GroupVersionKind())() }

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object { return o.DeepCopy() }

// DeepCopy returns a copy.
func (o *Object) DeepCopy() *Object {
	c := &Object{Unstructured: *o.Unstructured.DeepCopy(), ObservedGeneration: o.ObservedGeneration}
	for _, condition := range o.Conditions {
		c.Conditions = append(c.Conditions, *condition.DeepCopy())
	}
	return c
}

// MarshalJSON implements json.Marshaler.
func (o *Object) MarshalJSON() ([]byte, error) {
	return (&unstructured.Unstructured{Object: o.UnstructuredContent()}).MarshalJSON()
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Object) UnmarshalJSON(raw []byte) error {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return err
	}
	o.SetUnstructuredContent(u.Object)
	return nil
}

func generation(value any) int64 {
	switch n := value.(type) {
	case int64:
		return n
	case float64: // of a decoder that knows no whole numbers
		return int64(n)
	}
	return 0
}

func encoded(conditions []metav1.Condition) []any {
	var all []any
	for i := range conditions {
		c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err == nil { // a condition has strings, a number and a time: it always converts
			all = append(all, c)
		}
	}
	return all
}

// decoded drops what is no condition: the engine writes all of them.
func decoded(value any) (all []metav1.Condition) {
	list, _ := value.([]any)
	for _, item := range list {
		content, ok := item.(map[string]any)
		var c metav1.Condition
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(content, &c) == nil {
			all = append(all, c)
		}
	}
	return all
}
