package admission

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/engine/internal/forecast"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

func asking(question string) *enginetest.Object {
	return with(generation(1), func(f *enginetest.Object) { f.Annotations = map[string]string{lifecycle.AnnotationPreview: question} })
}

func TestPreviewHandler(t *testing.T) {
	cases := map[string]struct {
		reason    string
		want      any
		stored    bool
		namespace string
		answered  bool
		warned    string
	}{
		"Update":    {"a dry run that asks is answered", asking(preview.Update), false, "mine", true, ""},
		"Delete":    {"of a deletion, too", asking(preview.Delete), false, "mine", true, ""},
		"Rollback":  {"and of a rollback", asking(preview.Rollback), false, "mine", true, ""},
		"Stored":    {"what is stored is not touched", asking(preview.Update), true, "mine", false, ""},
		"Elsewhere": {"this operator will not act there", asking(preview.Update), false, "theirs", false, ""},
		"Silent":    {"without a question there is no answer", generation(1), false, "mine", false, ""},
		"Mistaken":  {"a mistake is reported", asking("Updates"), false, "mine", false, "must be update, delete or rollback"},
		"Garbage":   {"so is what cannot be read", "an object", false, "mine", false, "cannot be read"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := &Previews[*enginetest.Object]{Kind: kind("mine"), Report: notRunning, Now: time.Now}
			req := asked(t, generation(1), c.want)
			req.DryRun, req.Namespace = new(!c.stored), c.namespace
			req.Kind = metav1.GroupVersionKind(enginetest.Kind)
			answer := o.Handle(t.Context(), req)
			if !answer.Allowed || (len(answer.Patches) == 1) != c.answered {
				t.Errorf("%s: %+v", c.reason, answer)
			}
			if got := strings.Join(answer.Warnings, " "); !strings.Contains(got, c.warned) || (got == "") != (c.warned == "") {
				t.Errorf("%s: it warns %q", c.reason, got)
			}
		})
	}
}

// The API server asks before it has put in what the user did not send.
func TestPreviewRequestIsCompleted(t *testing.T) {
	born := time.Unix(1000, 0).UTC()
	old := with(generation(3), func(f *enginetest.Object) { f.UID, f.CreationTimestamp = "u", metav1.NewTime(born) })
	o := &Previews[*enginetest.Object]{Kind: kind(), Now: time.Now}
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: raw(t, asking(preview.Update)), OldObject: raw(t, old)}}
	q, err := o.question(req)
	if err != nil || q.want.UID != "u" || q.want.Generation != 3 || !q.want.CreationTimestamp.Time.Equal(born) {
		t.Errorf("%+v, %v", q.want, err)
	}
	if _, still := q.want.Annotations[lifecycle.AnnotationPreview]; still || q.asks != preview.Update {
		t.Errorf("it asks %q, and the planner would see it", q.asks)
	}
	got, err := completed([]byte(`{"status":{"a":1},"metadata":{}}`), []byte(`{"status":{"b":2}}`))
	if err != nil || string(got) != `{"metadata":{},"status":{"b":2}}` {
		t.Errorf("the status is not the user's: %s, %v", got, err)
	}
}

// notRunning is the report of a replica that has just started.
var notRunning = (&forecast.Forecaster[*enginetest.Object, struct{}]{}).Report
