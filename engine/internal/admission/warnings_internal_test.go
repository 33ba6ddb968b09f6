package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/engine/internal/forecast"
)

// talkative says which generations it was asked about.
func talkative(old, want *enginetest.Object) []string {
	if want.Name == "cursed" {
		panic("the planner is in a bad mood")
	}
	if old == nil {
		return []string{fmt.Sprintf("new %d", want.Generation)}
	}
	return []string{fmt.Sprintf("from %d to %d", old.Generation, want.Generation)}
}

// kind is that of an application of test objects.
func kind(namespaces ...string) Kind[*enginetest.Object] {
	decoder := admission.NewDecoder(enginetest.Scheme())
	return Kind[*enginetest.Object]{App: "fake", GVK: enginetest.Kind, Namespaces: namespaces, Decode: func(raw runtime.RawExtension) (*enginetest.Object, error) {
		obj := &enginetest.Object{}
		return obj, decoder.DecodeRaw(raw, obj)
	}}
}

// advice are the warnings of an application; nil if it has none.
func advice(warnings func(old, want *enginetest.Object) []string, namespaces ...string) *Warnings[*enginetest.Object] {
	a := &Warnings[*enginetest.Object]{Kind: kind(namespaces...)}
	if warnings != nil {
		a.Voices = append(a.Voices, func(_ context.Context, old, want *enginetest.Object) []string { return warnings(old, want) })
	}
	return a
}

func asked(t testing.TB, old, want any) admission.Request {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Namespace: "mine", Operation: admissionv1.Update, Object: raw(t, want), OldObject: raw(t, old),
	}}
	if old == nil {
		req.Operation = admissionv1.Create
	}
	return req
}

func raw(t testing.TB, obj any) runtime.RawExtension {
	t.Helper()
	if obj == nil {
		return runtime.RawExtension{}
	}
	bytes, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: bytes}
}

func generation(n int64) *enginetest.Object {
	f := &enginetest.Object{}
	f.SetGroupVersionKind(enginetest.Kind)
	f.Name, f.Generation = "f", n
	return f
}

// with edits the object.
func with(f *enginetest.Object, edit func(*enginetest.Object)) *enginetest.Object {
	edit(f)
	return f
}

func TestAdvice(t *testing.T) {
	cases := map[string]struct {
		reason     string
		warnings   func(old, want *enginetest.Object) []string
		namespaces []string
		old, want  any
		says       []string
	}{
		"Created":   {"a new object is advised on", talkative, nil, nil, generation(1), []string{"new 1"}},
		"Changed":   {"so is a change", talkative, nil, generation(1), generation(2), []string{"from 1 to 2"}},
		"Same":      {"a label or a finalizer is no change of the wish", talkative, nil, generation(1), generation(1), nil},
		"Leaving":   {"a deleted object needs no advice", talkative, nil, generation(1), with(generation(2), leave), nil},
		"Elsewhere": {"this operator will not act there", talkative, []string{"theirs"}, nil, generation(1), nil},
		"Here":      {"here it will", talkative, []string{"theirs", "mine"}, nil, generation(1), []string{"new 1"}},
		"Silent":    {"advice is optional", nil, nil, nil, generation(1), nil},
		"Panic":     {"a bug does not block requests", talkative, nil, nil, with(generation(1), curse), []string{forecast.StepsUnknown}},
		"Garbage":   {"nor does what cannot be read", talkative, nil, nil, "an object", []string{forecast.StepsUnknown}},
		"OldBroken": {"or could be read in former times only", talkative, nil, "an object", generation(1), []string{forecast.StepsUnknown}},
		"Nothing":   {"nor a request without an object", talkative, nil, nil, nil, []string{forecast.StepsUnknown}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := advice(c.warnings, c.namespaces...)
			answer := a.Handle(t.Context(), asked(t, c.old, c.want))
			if diff := cmp.Diff(c.says, answer.Warnings); diff != "" || !answer.Allowed {
				t.Errorf("%s: allowed %v, %s", c.reason, answer.Allowed, diff)
			}
		})
	}
}

func curse(f *enginetest.Object) { f.Name = "cursed" }
func leave(f *enginetest.Object) { f.DeletionTimestamp = new(metav1.NewTime(time.Unix(0, 0))) }

func TestRouterCallsHandlerOfKind(t *testing.T) {
	a := newRouter()
	a.Serve(enginetest.Kind, advice(talkative))
	req := asked(t, nil, generation(1))
	if answer := a.Handle(t.Context(), req); !answer.Allowed || len(answer.Warnings) != 0 {
		t.Errorf("a kind without a name is unknown, got %v", answer)
	}
	req.Kind = metav1.GroupVersionKind(enginetest.Kind)
	if answer := a.Handle(t.Context(), req); !answer.Allowed || len(answer.Warnings) != 1 {
		t.Errorf("its own planner knows it, got %v", answer)
	}
}

// Too many questions at once take no memory, and refuse no request.
func TestRouterAnswersAFewAtOnce(t *testing.T) {
	a := newRouter()
	a.Serve(enginetest.Kind, advice(talkative))
	req := asked(t, nil, generation(1))
	req.Kind = metav1.GroupVersionKind(enginetest.Kind)
	for range maxQuestions {
		a.slots <- struct{}{}
	}
	if answer := a.Handle(t.Context(), req); !answer.Allowed || len(answer.Warnings) != 1 || answer.Warnings[0] != tooBusy {
		t.Errorf("got %v", answer)
	}
	<-a.slots
	if answer := a.Handle(t.Context(), req); !answer.Allowed || len(answer.Warnings) != 1 || answer.Warnings[0] == tooBusy {
		t.Errorf("got %v", answer)
	}
}

func BenchmarkAdvice(b *testing.B) {
	a := advice(talkative)
	req := asked(b, generation(1), generation(2))
	for b.Loop() {
		a.Handle(b.Context(), req)
	}
}

// The warning about a deletion tells orphaned dependents from those that go, as the API server does.
func TestOrphans(t *testing.T) {
	cases := map[string]struct {
		options    string
		finalizers []string
		want       bool
	}{
		"Default":             {`{}`, nil, false},
		"Background":          {`{"propagationPolicy":"Background"}`, []string{"orphan"}, false},
		"Foreground":          {`{"propagationPolicy":"Foreground"}`, nil, false},
		"Orphan":              {`{"propagationPolicy":"Orphan"}`, []string{"foregroundDeletion"}, true},
		"OldOrphan":           {`{"orphanDependents":true}`, nil, true},
		"OldBackground":       {`{"orphanDependents":false}`, []string{"orphan"}, false},
		"FinalizerOrphan":     {`{}`, []string{"a.b/c", "orphan"}, true},
		"FinalizerForeground": {`{}`, []string{"foregroundDeletion", "orphan"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := orphans([]byte(c.options), c.finalizers); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
