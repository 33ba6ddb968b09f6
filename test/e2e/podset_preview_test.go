package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset/contract"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// ask previews the edit, also of a set that does not exist.
func (s *podSet) ask(t *testing.T, question string, edit func(*appv1.PodSetSpec)) (report preview.Report) {
	t.Helper()
	eventually(t, "a preview is given", func(ctx context.Context) error {
		p := &appv1.PodSet{}
		err := api.Get(ctx, s.key, p)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		edit(&p.Spec)
		p.Annotations = map[string]string{lifecycle.AnnotationPreview: question}
		if apierrors.IsNotFound(err) {
			p.Namespace, p.Name = s.key.Namespace, s.key.Name
			err = api.Create(ctx, p, client.DryRunAll)
		} else {
			err = api.Update(ctx, p, client.DryRunAll)
		}
		if err != nil {
			return err
		}
		var ok bool
		if report, ok = preview.Decode(p.Annotations[lifecycle.AnnotationPreview]); !ok || !complete(report) {
			return fmt.Errorf("%w: it is %+v", errNotYet, report)
		}
		return nil
	})
	return report
}

func (s *podSet) history(t *testing.T) history.Log {
	t.Helper()
	cm := &corev1.ConfigMap{}
	err := api.Get(t.Context(), client.ObjectKey{Namespace: s.key.Namespace, Name: history.Name("PodSet", s.key.Name)}, cm)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	book, err := history.Decode(cm.Data[history.Key])
	if err != nil {
		t.Fatal(err)
	}
	return book
}

// many is a step with the number of its pods.
func many(s lifecycle.Step) string {
	return fmt.Sprintf("%s %s %s of %s", s, s.Class, s.Reason, s.Args["pods"])
}

// TestPodSetChangesMatchPreview previews creation, size, template and deletion with real pods, and compares.
func TestPodSetChangesMatchPreview(t *testing.T) {
	s := newSet(t)
	size := func(n int32) func(*appv1.PodSetSpec) {
		return func(spec *appv1.PodSetSpec) { spec.Replicas = n }
	}
	for _, change := range []struct {
		name string
		edit func(*appv1.PodSetSpec)
	}{
		{"creation", size(3)}, {"more", size(5)}, {"less", size(3)},
		{"another template", func(spec *appv1.PodSetSpec) {
			spec.Template.Metadata.Annotations = map[string]string{"example.com/look": "new"}
		}},
		{"none", size(0)}, {"one", size(1)},
	} {
		report, begun := s.ask(t, preview.Update, change.edit), len(s.history(t).Entries)
		s.Apply(t, change.edit)
		s.Settles(t, lifecycle.OutcomeSettled, report.Reason)
		var planned, done []string
		for _, step := range report.Actions() {
			planned = append(planned, many(step.Step))
		}
		for _, e := range s.history(t).Entries[begun:] {
			if e.Result == history.ResultSucceeded {
				done = append(done, many(e.Step))
			}
		}
		if diff := cmp.Diff(done, planned); diff != "" || len(done) == 0 {
			t.Errorf("%s: the actual steps (-) differ from the preview (+): %s", change.name, diff)
		}
	}
	s.deletionMatchesPreview(t)
}

// deletionMatchesPreview: Kubernetes deletes the pods, without a step.
func (s *podSet) deletionMatchesPreview(t *testing.T) {
	t.Helper()
	if report := s.ask(t, preview.Delete, func(*appv1.PodSetSpec) {}); len(report.Actions()) != 0 || report.Reason != "Deleted" {
		t.Errorf("the preview of its deletion is %+v", report)
	}
	if err := api.Delete(t.Context(), &appv1.PodSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: contract.Set}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its pods go", func(context.Context) error {
		if left := len(s.pods(t)); left > 0 {
			return fmt.Errorf("%w: %d are left", errNotYet, left)
		}
		return nil
	})
}
