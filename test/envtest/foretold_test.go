package envtest_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
	"github.com/governor-dev/governor/test/previewcheck"
)

// memcachedChanges changes every field of the spec, one after the other, and changes it
// back.
var memcachedChanges = []struct {
	field, name string
	edit        func(*cachev1.MemcachedSpec)
}{
	{"Size", "more servers", func(s *cachev1.MemcachedSpec) { s.Size = 3 }},
	{"Size", "no server", func(s *cachev1.MemcachedSpec) { s.Size = 0 }},
	{"Size", "one server", func(s *cachev1.MemcachedSpec) { s.Size = 1 }},
	{"ContainerPort", "another port", func(s *cachev1.MemcachedSpec) { s.ContainerPort = 22122 }},
	{"ContainerPort", "a low port", func(s *cachev1.MemcachedSpec) { s.ContainerPort = 911 }},
	{"ContainerPort", "the usual port", func(s *cachev1.MemcachedSpec) { s.ContainerPort = 11211 }},
	{"Version", "a version", func(s *cachev1.MemcachedSpec) { s.Version = "1.6.38" }},
	{"Image", "an image", func(s *cachev1.MemcachedSpec) { s.Version, s.Image = "", "example.com/memcached:1" }},
	{"Image", "the chosen image", func(s *cachev1.MemcachedSpec) { s.Image = "" }},
	{"Memory", "memory", func(s *cachev1.MemcachedSpec) { s.Memory = new(resource.MustParse("256Mi")) }},
	{"Memory", "the usual memory", func(s *cachev1.MemcachedSpec) { s.Memory = nil }},
	{"Resources", "resources", func(s *cachev1.MemcachedSpec) {
		s.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
	}},
	{"Resources", "no resources", func(s *cachev1.MemcachedSpec) { s.Resources = corev1.ResourceRequirements{} }},
	{"Pod", "everything of the pods", func(s *cachev1.MemcachedSpec) {
		s.Pod = cachev1.PodSettings{
			Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"example.com/a": "b"},
			NodeSelector: map[string]string{"disk": "fast"}, PriorityClassName: "high",
			Tolerations:      []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "one"}, {Name: "two"}},
		}
	}},
	{"Pod", "less of the pods", func(s *cachev1.MemcachedSpec) {
		s.Pod.ImagePullSecrets, s.Pod.Labels = s.Pod.ImagePullSecrets[1:], map[string]string{"team": "b", "shift": "late"}
	}},
	{"Pod", "nothing of the pods", func(s *cachev1.MemcachedSpec) { s.Pod = cachev1.PodSettings{} }},
	{"Paused", "a pause", func(s *cachev1.MemcachedSpec) { s.Paused = true }},
}

// TestPreviewOfMemcachedChangesMatchesReality previews a change of every field, makes it,
// and compares every field of every object.
func TestPreviewOfMemcachedChangesMatchesReality(t *testing.T) {
	a, o := foresightful(t)
	tried := map[string]bool{}
	for _, c := range memcachedChanges {
		tried[c.field] = true
		before, err := o.Snapshot(t.Context())
		must(t, err)
		report := a.foretells(t, preview.Update, c.edit)
		if c.field == "Paused" && !report.Paused {
			t.Errorf("%s: it does not say that nothing happens: %+v", c.name, report)
		}
		if !report.Settles() {
			t.Errorf("%s: it does not settle: %+v", c.name, report)
		}
		a.changes(t, c.edit)
		after, err := o.Snapshot(t.Context())
		must(t, err)
		became, err := previewcheck.Changes(scheme, before, after)
		must(t, err)
		if len(became) == 0 && c.field != "Paused" {
			t.Errorf("%s: nothing happened", c.name)
		}
		if diff := cmp.Diff(became, previewcheck.Sorted(report.Resources)); diff != "" {
			t.Errorf("%s: the result (-) differs from the preview (+): %s", c.name, diff)
		}
	}
	for i := range reflect.TypeFor[cachev1.MemcachedSpec]().NumField() {
		if field := reflect.TypeFor[cachev1.MemcachedSpec]().Field(i).Name; !tried[field] {
			t.Errorf("no change of %s is tried", field)
		}
	}
}

// TestPreviewOfMemcachedCreationAndDeletionMatchesReality previews the creation, and the
// deletion, which deletes all objects that the Memcached owns.
func TestPreviewOfMemcachedCreationAndDeletionMatchesReality(t *testing.T) {
	a, o := foresightful(t)
	m := a.lone("new")
	m.Annotations = map[string]string{lifecycle.AnnotationPreview: preview.Update}
	must(t, api.Create(t.Context(), m, client.DryRunAll))
	report, ok := preview.Decode(m.Annotations[lifecycle.AnnotationPreview])
	if !ok || !report.Settles() {
		t.Fatalf("it says %+v", report)
	}
	must(t, api.Create(t.Context(), a.lone("new")))
	a.taken(t, "new")
	o.Instance = "new"
	after, err := o.Snapshot(t.Context())
	must(t, err)
	became, err := previewcheck.Changes(scheme, nil, after)
	must(t, err)
	if diff := cmp.Diff(became, previewcheck.Sorted(report.Resources)); diff != "" || len(became) == 0 {
		t.Errorf("the result (-) differs from the preview (+): %s", diff)
	}
	gone := previewcheck.Sorted(a.foretells(t, preview.Delete, func(*cachev1.MemcachedSpec) {}).Resources)
	o.Instance = "m"
	now, err := o.Snapshot(t.Context())
	must(t, err)
	owner, err := get(t, &cachev1.Memcached{}, a.namespace, "m")
	must(t, err)
	for id, obj := range now {
		if len(obj.GetOwnerReferences()) != 1 || obj.GetOwnerReferences()[0].UID != owner.UID {
			t.Errorf("%s would outlive its owner", id)
		}
	}
	became, err = previewcheck.Changes(scheme, now, nil)
	must(t, err)
	if diff := cmp.Diff(became, gone); diff != "" {
		t.Errorf("the deleted objects (-) differ from the preview (+): %s", diff)
	}
}

// foresightful runs an operator with previews, and a memcached that it has reconciled.
func foresightful(t *testing.T) (*adviser, previewcheck.Observer) {
	t.Helper()
	a := newAdviser(t, time.Now())
	must(t, api.Create(t.Context(), a.lone("m")))
	a.taken(t, "m")
	a.foretells(t, preview.Update, func(*cachev1.MemcachedSpec) {})
	return a, previewcheck.Observer{
		Client: api, Namespace: a.namespace, Instance: "m", App: memcached.Name, Kinds: []schema.GroupVersionKind{
			appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Service"),
			policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		},
	}
}

// foretells returns the preview of the edit.
func (a *adviser) foretells(t *testing.T, question string, edit func(*cachev1.MemcachedSpec)) (report preview.Report) {
	t.Helper()
	eventually(t, "a preview is given", func() error {
		m, err := get(t, &cachev1.Memcached{}, a.namespace, "m")
		if err != nil {
			return err
		}
		edit(&m.Spec)
		m.Annotations = map[string]string{lifecycle.AnnotationPreview: question}
		if err := api.Update(t.Context(), m, client.DryRunAll); err != nil {
			return err
		}
		var ok bool
		if report, ok = preview.Decode(m.Annotations[lifecycle.AnnotationPreview]); !ok {
			return errNotYet
		}
		return nil
	})
	return report
}

// changes makes the edit and waits until the operator has reconciled it.
func (a *adviser) changes(t *testing.T, edit func(*cachev1.MemcachedSpec)) {
	t.Helper()
	eventually(t, "the object is edited", func() error {
		m, err := get(t, &cachev1.Memcached{}, a.namespace, "m")
		if err != nil {
			return err
		}
		edit(&m.Spec)
		return api.Update(t.Context(), m)
	})
	a.taken(t, "m")
}

// taken waits until the operator has taken a step for the present generation, or has
// settled.
func (a *adviser) taken(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the operator has seen it", func() error {
		m, err := get(t, &cachev1.Memcached{}, a.namespace, name)
		if err == nil && m.Status.ObservedGeneration != m.Generation && !apimeta.IsStatusConditionTrue(m.Status.Conditions, lifecycle.ConditionPaused) {
			err = errors.New("not this generation")
		}
		return err
	})
}
