package caching

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheAuthorOfASpec(t *testing.T) {
	at := func(second int64) *metav1.Time { return new(metav1.Unix(second, 0)) }
	spec, other := metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`), metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{}}}`)
	key := types.NamespacedName{Name: "e"}
	var a SpecManagers
	a.Note(key, []metav1.ManagedFieldsEntry{
		{Manager: "helm", Time: at(1), FieldsV1: spec},
		{Manager: "kubectl-edit", Time: at(5), FieldsV1: spec},
		{Manager: "governor", Time: at(7), FieldsV1: other},
		{Manager: "scaler", Time: at(9), FieldsV1: spec, Subresource: "status"},
	})
	if got := a.Of(key); got != "kubectl-edit" {
		t.Errorf("it is %q", got)
	}
	if got := a.Of(types.NamespacedName{Name: "other"}); got != "" {
		t.Errorf("an unknown object has author %q", got)
	}
}

// API servers give no time to what comes by the scale subresource of a custom resource.
func TestTheAuthorIsWhoseEntryIsNew(t *testing.T) {
	at := func(second int64) *metav1.Time { return new(metav1.Unix(second, 0)) }
	spec := metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`)
	helm := metav1.ManagedFieldsEntry{Manager: "helm", Time: at(1), FieldsV1: spec}
	scale := metav1.ManagedFieldsEntry{Manager: "kubectl", FieldsV1: spec, Subresource: "scale"}
	told := metav1.ManagedFieldsEntry{Manager: "governor", Time: at(7), FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`), Subresource: "status"}
	later := metav1.ManagedFieldsEntry{Manager: "helm", Time: at(9), FieldsV1: spec}
	key := types.NamespacedName{Name: "e"}
	var a SpecManagers
	for i, seen := range []struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		{[]metav1.ManagedFieldsEntry{helm}, "helm"},
		{[]metav1.ManagedFieldsEntry{helm, scale}, "kubectl"},
		{[]metav1.ManagedFieldsEntry{helm, scale, told}, "kubectl"},
		{[]metav1.ManagedFieldsEntry{later, scale, told}, "helm"},
	} {
		if a.Note(key, seen.entries); a.Of(key) != seen.want {
			t.Errorf("look %d: it is %q, not %q", i, a.Of(key), seen.want)
		}
	}
}
