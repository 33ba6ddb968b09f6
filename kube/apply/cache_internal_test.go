package apply

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/lifecycle"
)

// stored is a Deployment as the cache shows it some time after Governor wrote it.
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

func TestAppliedCacheDetectsChanges(t *testing.T) {
	cases := map[string]struct {
		reason string
		now    func(*appsv1.Deployment)
		want   bool
	}{
		"Same":       {"the version that was written", nil, true},
		"Status":     {"a controller wrote the status", func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, true},
		"StatusOf":   {"a controller owns the status", func(d *appsv1.Deployment) { d.ManagedFields = append(d.ManagedFields, entryOf("k", "status", "{}")) }, true},
		"Spec":       {"the generation changes with the spec", func(d *appsv1.Deployment) { d.Generation++ }, false},
		"Label":      {"a label was changed", func(d *appsv1.Deployment) { d.Labels["a"] = "c" }, false},
		"Annotation": {"an annotation was added", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} }, false},
		"Owner":      {"it has another owner", func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "other" }, false},
		"Finalizer":  {"a finalizer was added", func(d *appsv1.Deployment) { d.Finalizers = []string{"f"} }, false},
		"Taken":      {"another manager took fields without changing them", func(d *appsv1.Deployment) { d.ManagedFields[0].Manager = "other" }, false},
		"Fields":     {"Governor no longer owns the same fields", func(d *appsv1.Deployment) { d.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1("{}") }, false},
		"Another":    {"it was recreated", func(d *appsv1.Deployment) { d.UID = "v" }, false},
	}
	owner, id := types.NamespacedName{Name: "web"}, identity{"", "Deployment", "web"}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var m appliedCache
			m.record(owner, id, stored(nil), fingerprint{1})
			if !m.unchanged(owner, id, stored(nil), fingerprint{1}) {
				t.Fatal("the written version counts as changed")
			}
			now := stored(c.now)
			if name != "Same" {
				now.ResourceVersion = "11"
			}
			if got := m.unchanged(owner, id, now, fingerprint{1}); got != c.want {
				t.Errorf("%s: the same: %t", c.reason, got)
			}
			if m.unchanged(owner, id, now, fingerprint{2}) {
				t.Error("another declaration counts as the same")
			}
		})
	}
}

// An object is compared if its written version was never seen, or if it has no generation:
// the changes since then are unknown.
func TestAppliedCacheComparesUnknownVersions(t *testing.T) {
	old := func(d *appsv1.Deployment) { d.Generation = 0 }
	later := func(d *appsv1.Deployment) { d.ResourceVersion = "11" }
	for name, versions := range map[string][]client.Object{"NeverSeen": {stored(later)}, "NoGeneration": {stored(old), stored(func(d *appsv1.Deployment) { old(d); later(d) })}} {
		t.Run(name, func(t *testing.T) {
			var m appliedCache
			owner, id := types.NamespacedName{Name: "web"}, identity{"", "Deployment", "web"}
			m.record(owner, id, stored(nil), fingerprint{})
			for i, obj := range versions {
				if got, last := m.unchanged(owner, id, obj, fingerprint{}), i == len(versions)-1; got == last {
					t.Errorf("comparison %d: the same: %t", i+1, got)
				}
			}
		})
	}
}

func TestAppliedCacheDetectsNewDeclaration(t *testing.T) {
	owner, id, was, is := types.NamespacedName{Name: "o"}, identity{"", "ConfigMap", "config"}, fingerprint{1}, fingerprint{2}
	var m appliedCache
	if m.declaredOtherwise(owner, id, is) {
		t.Error("the declaration of an earlier operator process counts as known")
	}
	m.record(owner, id, stored(nil), was)
	if m.declaredOtherwise(owner, id, was) || !m.declaredOtherwise(owner, id, is) {
		t.Error("only the declaration counts, not later writes")
	}
}

// An overridden object that another client deleted, and that is no longer wanted, causes no further reconcile.
func TestForgottenOverride(t *testing.T) {
	now, owner := time.Unix(1000, 0), types.NamespacedName{Name: "web"}
	a := New("web", fake.NewClientBuilder().Build(), nil, nil, nil, nil, func() time.Time { return now })
	for _, name := range []string{"kept", "gone"} {
		a.cache.recordOverridden(owner, identity{"apps", "Deployment", name}, stored(nil), fingerprint{}, []string{"spec"}, now)
	}
	a.forgetOthers(owner, []lifecycle.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}})
	if all, _ := a.Overridden(owner); len(all) != 1 || all[0].Name != "kept" {
		t.Errorf("overridden are %v", all)
	}
}
