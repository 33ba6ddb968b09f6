package apply

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored is a Deployment as a cache shows it some time after we have written it.
func stored(edit func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: "web", UID: "u", Generation: 3, ResourceVersion: "10", Labels: map[string]string{"a": "b"},
		OwnerReferences: []metav1.OwnerReference{{UID: "owner"}},
		ManagedFields:   []metav1.ManagedFieldsEntry{entryOf(Manager, "", `{"f:spec":{}}`)},
	}}
	if edit != nil {
		edit(d)
	}
	return d
}

func entryOf(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestMemory(t *testing.T) {
	cases := map[string]struct {
		reason string
		now    func(*appsv1.Deployment)
		want   bool
	}{
		"Same":       {"the version that was written", nil, true},
		"Status":     {"a controller told its status", func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, true},
		"StatusOf":   {"and so owns it", func(d *appsv1.Deployment) { d.ManagedFields = append(d.ManagedFields, entryOf("k", "status", "{}")) }, true},
		"Spec":       {"the API server counts changes of the spec", func(d *appsv1.Deployment) { d.Generation++ }, false},
		"Label":      {"a label was changed", func(d *appsv1.Deployment) { d.Labels["a"] = "c" }, false},
		"Annotation": {"an annotation was added", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} }, false},
		"Owner":      {"it was given away", func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "other" }, false},
		"Finalizer":  {"somebody holds it", func(d *appsv1.Deployment) { d.Finalizers = []string{"f"} }, false},
		"Taken":      {"somebody took fields without changing them", func(d *appsv1.Deployment) { d.ManagedFields[0].Manager = "other" }, false},
		"Fields":     {"we do not own the same any more", func(d *appsv1.Deployment) { d.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1("{}") }, false},
		"Another":    {"it was made anew", func(d *appsv1.Deployment) { d.UID = "v" }, false},
	}
	owner, id := types.NamespacedName{Name: "web"}, identity{"Deployment", "web"}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var m memory
			m.learn(owner, id, stored(nil), fingerprint{1})
			if !m.same(owner, id, stored(nil), fingerprint{1}) {
				t.Fatal("the version that was written is what was written")
			}
			now := stored(c.now)
			if name != "Same" {
				now.ResourceVersion = "11"
			}
			if got := m.same(owner, id, now, fingerprint{1}); got != c.want {
				t.Errorf("%s: the same: %t", c.reason, got)
			}
			if m.same(owner, id, now, fingerprint{2}) {
				t.Error("what is wanted now is something else")
			}
		})
	}
}

// What was never looked at in the version that was written is compared, and so is what
// has no generation: nobody knows what happened since.
func TestMemoryDoubts(t *testing.T) {
	old := func(d *appsv1.Deployment) { d.Generation = 0 }
	later := func(d *appsv1.Deployment) { d.ResourceVersion = "11" }
	for name, looked := range map[string][]client.Object{"Unseen": {stored(later)}, "Uncounted": {stored(old), stored(func(d *appsv1.Deployment) { old(d); later(d) })}} {
		t.Run(name, func(t *testing.T) {
			var m memory
			owner, id := types.NamespacedName{Name: "web"}, identity{"Deployment", "web"}
			m.learn(owner, id, stored(nil), fingerprint{})
			for i, obj := range looked {
				if got, last := m.same(owner, id, obj, fingerprint{}), i == len(looked)-1; got == last {
					t.Errorf("look %d: the same: %t", i+1, got)
				}
			}
		})
	}
}

func TestOtherwise(t *testing.T) {
	owner, id, was, is := types.NamespacedName{Name: "o"}, identity{"ConfigMap", "door"}, fingerprint{1}, fingerprint{2}
	var m memory
	if m.otherwise(owner, id, is) {
		t.Error("of what was declared by another operator nothing is known")
	}
	m.learn(owner, id, stored(nil), was)
	if m.otherwise(owner, id, was) || !m.otherwise(owner, id, is) {
		t.Error("only what is declared counts, not who has written since")
	}
}
