package envtest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/preview"
	"github.com/governor-dev/governor/test/fakeapp"
)

// foresees returns the preview of an edit or a deletion of the ring.
func foresees(t *testing.T, namespace, question string, edit func(*fakeapp.Ring)) (preview.Report, bool) {
	t.Helper()
	var r *fakeapp.Ring
	must(t, retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		if r, err = get(t, &fakeapp.Ring{}, namespace, "r"); err != nil {
			return err
		}
		edit(r)
		if r.Annotations == nil {
			r.Annotations = map[string]string{}
		}
		r.Annotations[lifecycle.AnnotationPreview] = question
		return api.Update(t.Context(), r, client.DryRunAll)
	}))
	return preview.Decode(r.Annotations[lifecycle.AnnotationPreview])
}

// previews runs an operator with previews, and a settled ring.
func previews(t *testing.T, size int) *adviser {
	t.Helper()
	installRings(t)
	a := newAdviser(t, time.Now())
	newRing(t, a.namespace, "r", size)
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	eventually(t, "previews are given", func() error {
		if _, ok := foresees(t, a.namespace, preview.Update, func(*fakeapp.Ring) {}); !ok {
			return errNotYet
		}
		return nil
	})
	return a
}

func previewOf(t *testing.T, namespace string, edit func(*fakeapp.Ring)) (preview.Report, bool) {
	t.Helper()
	return foresees(t, namespace, preview.Update, edit)
}

func toSize(n int) func(*fakeapp.Ring) { return func(r *fakeapp.Ring) { r.Spec.Size = n } }

func planned(p preview.Plan) (steps []string) {
	for _, s := range p.Actions() {
		steps = append(steps, fmt.Sprintf("%s %s %s", s, s.Class, s.Reason))
	}
	return steps
}

func done(b history.Log) (steps []string) {
	for _, e := range b.Entries {
		if e.Result == history.ResultSucceeded {
			steps = append(steps, fmt.Sprintf("%s %s %s", e.Step, e.Step.Class, e.Step.Reason))
		}
	}
	return steps
}

// A preview matches reality, step by step and object by object.
func TestPreviewMatchesReality(t *testing.T) {
	a := previews(t, 3)
	for _, size := range []int{5, 2, 4, 1} {
		before := len(bookOf(t, a.namespace, "r").Entries)
		report, _ := foresees(t, a.namespace, preview.Update, toSize(size))
		if again := len(bookOf(t, a.namespace, "r").Entries); again != before {
			t.Fatalf("a preview did something")
		}
		odd := exists(t, a.namespace, "r-odd")
		resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = size })
		ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
		if diff := cmp.Diff(planned(report.Plan), done(bookOf(t, a.namespace, "r"))[before:]); diff != "" {
			t.Errorf("to %d: %s", size, diff)
		}
		if diff := cmp.Diff(became(odd, exists(t, a.namespace, "r-odd")), report.Resources); diff != "" {
			t.Errorf("to %d: %s", size, diff)
		}
	}
}

func exists(t *testing.T, namespace, name string) bool {
	t.Helper()
	_, err := get(t, &corev1.ConfigMap{}, namespace, name)
	must(t, client.IgnoreNotFound(err))
	return err == nil
}

func became(was, is bool) []preview.Resource {
	switch {
	case !was && is:
		return []preview.Resource{{Verb: "Created", Kind: "ConfigMap", Name: "r-odd"}}
	case was && !is:
		return []preview.Resource{{Verb: "Pruned", Kind: "ConfigMap", Name: "r-odd"}}
	}
	return nil
}

func TestDeletionIsPreviewed(t *testing.T) {
	a := previews(t, 3)
	report, _ := foresees(t, a.namespace, preview.Delete, func(*fakeapp.Ring) {})
	if n := len(report.Actions()); n != 3 || !report.Settles() {
		t.Errorf("planned %v, %s", planned(report.Plan), report.Outcome)
	}
	if len(report.Resources) != 2 { // r and r-odd; steps remove the members
		t.Errorf("deleted are %v", report.Resources)
	}
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
}

// A preview shows the values of fields, but not those of Secrets. For a paused object it
// says that nothing happens for now.
func TestPreviewShowsFieldValues(t *testing.T) {
	a := previews(t, 1)
	annotateRing(t, a.namespace, lifecycle.AnnotationPaused, "true")
	ringReaches(t, a.namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	cm, err := get(t, &corev1.ConfigMap{}, a.namespace, "r")
	must(t, err)
	cm.Data["ring"] = "other"
	must(t, api.Update(t.Context(), cm))
	eventually(t, "the drift is previewed", func() error {
		report, _ := previewOf(t, a.namespace, func(r *fakeapp.Ring) { r.Spec.Secure = true })
		want := preview.Resource{Verb: "Configured", Kind: "ConfigMap", Name: "r", Fields: []preview.Field{
			{Path: "data.ring", From: `"other"`, To: `"r"`},
		}}
		if len(report.Resources) != 4 || !report.Paused || !slices.ContainsFunc(report.Resources, func(r preview.Resource) bool { return cmp.Equal(want, r) }) {
			return fmt.Errorf("it is %+v", report)
		}
		return nil
	})
}

func TestPreviewHidesSecretValues(t *testing.T) {
	a := previews(t, 1)
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Secure = true })
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	annotateRing(t, a.namespace, lifecycle.AnnotationPaused, "true")
	ringReaches(t, a.namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	s, err := get(t, &corev1.Secret{}, a.namespace, "r-member")
	must(t, err)
	s.Data[corev1.TLSCertKey] = []byte("spoilt")
	must(t, api.Update(t.Context(), s))
	eventually(t, "the drift is previewed", func() error {
		report, _ := previewOf(t, a.namespace, func(*fakeapp.Ring) {})
		if len(report.Resources) != 1 || report.Resources[0].Name != "r-member" {
			return fmt.Errorf("it is %+v", report)
		}
		for _, f := range report.Resources[0].Fields {
			if f.From != "" || f.To != "" {
				t.Errorf("%s of a Secret is shown", f.Path)
			}
		}
		return nil
	})
}

func annotateRing(t *testing.T, namespace, key, value string) {
	t.Helper()
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	base := r.DeepCopyObject().(*fakeapp.Ring)
	r.Annotations = map[string]string{key: value}
	must(t, api.Patch(t.Context(), r, client.MergeFrom(base)))
}

// Only dry runs get a preview, and only a preview delays a request.
func TestOnlyDryRunsGetPreviews(t *testing.T) {
	a := previews(t, 1)
	annotateRing(t, a.namespace, lifecycle.AnnotationPreview, preview.Update)
	r, err := get(t, &fakeapp.Ring{}, a.namespace, "r")
	must(t, err)
	if got := r.Annotations[lifecycle.AnnotationPreview]; got != preview.Update {
		t.Errorf("a stored annotation became %q", got)
	}
}

// A preview reports a gate that would hold a step, and an object that cannot be rendered.
func TestPreviewReportsGatesAndErrors(t *testing.T) {
	a := previews(t, 3)
	r, err := get(t, &fakeapp.Ring{}, a.namespace, "r")
	must(t, err)
	setHealth(t, a.namespace, "r-"+r.Status.Members[0], "Sulking")
	eventually(t, "the gate is reported", func() error {
		report, _ := previewOf(t, a.namespace, toSize(2))
		if n := len(report.Steps); n != 1 || len(report.Steps[0].Held) != 1 || report.Steps[0].Held[0].Gate != "KeepsQuorum" {
			return fmt.Errorf("it is %+v", report)
		}
		if len(report.Unknowns) != 1 {
			t.Errorf("the state of %s is unknown, and the preview says %q", r.Status.Members[0], report.Unknowns)
		}
		return nil
	})
	for mood, reason := range map[string]string{"fail": "CannotRender", "panic": "OperatorBug"} {
		report, _ := previewOf(t, a.namespace, func(r *fakeapp.Ring) { r.Spec.Mood = mood })
		if report.Outcome != lifecycle.OutcomeBlocked || report.Reason != reason || len(report.Steps) != 0 {
			t.Errorf("%s: %+v", mood, report)
		}
	}
}

// A creation is previewed before the object exists.
func TestCreationIsPreviewed(t *testing.T) {
	a := previews(t, 1)
	r := &fakeapp.Ring{Spec: fakeapp.Spec{Size: 3}}
	r.Namespace, r.Name = a.namespace, "new"
	r.Annotations = map[string]string{lifecycle.AnnotationPreview: preview.Update}
	must(t, api.Create(t.Context(), r, client.DryRunAll))
	report, _ := preview.Decode(r.Annotations[lifecycle.AnnotationPreview])
	if n := len(report.Actions()); n != 5 || len(report.Resources) != 2 || !report.Settles() {
		t.Errorf("planned %v, %v", planned(report.Plan), report.Resources)
	}
}
