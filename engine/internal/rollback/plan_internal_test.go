package rollback

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/engine/internal/specchange"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// returning is a planner whose way back is one step, and then what is given.
type returning struct {
	class  lifecycle.Class
	end    lifecycle.Decision
	render error
}

func (p returning) Resources(*enginetest.Object, int) ([]lifecycle.Object, error) {
	return nil, p.render
}

func (p returning) Next(_ *enginetest.Object, seen int, _ time.Time) lifecycle.Decision {
	if seen == 0 {
		return lifecycle.Proceed(lifecycle.Step{Name: "Restart", Target: "m", Class: p.class})
	}
	return p.end
}

func (returning) Effect(_ *enginetest.Object, seen int, _ lifecycle.Step) (int, int) {
	return seen, seen + 1
}
func (returning) Status(*enginetest.Object, int) {}
func (returning) Conditions(*enginetest.Object, int, lifecycle.Decision) []lifecycle.Condition {
	return nil
}

// try previews the return as the engine does.
func (p returning) try(want *enginetest.Object) (preview.Plan, error) {
	if _, err := p.Resources(want, 0); err != nil {
		return preview.Plan{}, err
	}
	plan, _, _ := preview.Simulator[*enginetest.Object, int]{Planner: p}.Unroll(want, 0, time.Unix(0, 0))
	return plan, nil
}

// planner knows no revisions yet.
func planner() *Planner[*enginetest.Object] {
	c := enginetest.Builder().Build()
	revisions := revision.NewStore("app", enginetest.Kind, nil, c, c)
	return &Planner[*enginetest.Object]{Revisions: revisions, Specs: &specchange.Finder[*enginetest.Object]{
		Kind: enginetest.Kind, New: enginetest.NewObject, Revisions: revisions, History: historystore.New("app", "v1", c, c),
	}}
}

func TestReasonsAgainstRollback(t *testing.T) {
	present := enginetest.Kind.GroupVersion().String()
	cases := map[string]struct {
		reason  string
		planner returning
		version string
		want    string
	}{
		"Open":         {"what can be undone and ends well", returning{class: lifecycle.ClassDisruptive, end: lifecycle.First()}, present, ""},
		"Irreversible": {"no step may be for good", returning{class: lifecycle.ClassIrreversible, end: lifecycle.First()}, present, "the step Restart m, which cannot be undone"},
		"Blocked":      {"it must end well", returning{end: lifecycle.Block("VersionRefused", "It is older.")}, present, "does not lead to the end: It is older."},
		"Unrenderable": {"it must be understood", returning{render: errors.New("no")}, present, "cannot be rendered: no"},
		"Version":      {"also by this operator", returning{end: lifecycle.First()}, "x/v0", "is written in x/v0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := Plan[*enginetest.Object]{To: revision.Revision{Number: 7, APIVersion: c.version}, Want: enginetest.New("a")}
			got := planner().objectionTo(w, c.planner.try)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || c.want != "" && !strings.Contains(got, "revision 7") {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestThePatchBackReplacesTheWholeSpec(t *testing.T) {
	obj := enginetest.New("a")
	obj.ResourceVersion, obj.Annotations = "9", map[string]string{"kept": "yes"}
	w := Plan[*enginetest.Object]{Note: Note{Failed: 3, To: 2, Reason: "ChangeFailed"}, To: revision.Revision{Spec: json.RawMessage(`{"size":1}`)}}
	raw, err := w.Patch(obj)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`{"op":"replace","path":"/metadata/resourceVersion","value":"9"}`, `"kept":"yes"`, `{"op":"replace","path":"/spec","value":{"size":1}}`,
	} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("%s lacks %s", raw, part)
		}
	}
	if len(obj.Annotations) != 1 {
		t.Error("the cache's object was changed")
	}
}

// failed is an object whose first spec worked, and whose second has failed.
func failed(t *testing.T, p *Planner[*enginetest.Object]) *enginetest.Object {
	t.Helper()
	obj := enginetest.New("a")
	obj.Spec.From = "old"
	if _, err := p.Revisions.Save(t.Context(), obj, "ann", true); err != nil {
		t.Fatal(err)
	}
	obj.Spec.From, obj.Generation = "new", 2
	return obj
}

// The last spec that worked is put back once: what was put back and fails, and what is declared again, halts.
func TestPlan(t *testing.T) {
	p := planner()
	well := returning{end: lifecycle.First()}
	if w, err := p.Plan(t.Context(), enginetest.New("first"), "ann", "ChangeFailed", well.try); err != nil || w.Objection != "none is known that worked." {
		t.Errorf("the first spec: %q, %v", w.Objection, err)
	}
	obj := failed(t, p)
	w, err := p.Plan(t.Context(), obj, "ann", "ChangeFailed", well.try)
	if err != nil || w.Objection != "" || w.Want.Spec.From != "old" || w.Note.Failed != 2 || w.Note.To != 1 {
		t.Fatalf("the plan is %+v, %v", w, err)
	}
	note, err := json.Marshal(w.Note)
	if err != nil {
		t.Fatal(err)
	}
	obj.Annotations = map[string]string{annotationRolledBack: string(note)}
	if w, _ = p.Plan(t.Context(), obj, "ann", "ChangeFailed", well.try); !strings.Contains(w.Objection, "declared again") {
		t.Errorf("it is rolled back again: %q", w.Objection)
	}
	if facts := Condition(obj); len(facts) > 0 {
		t.Errorf("it was declared again, and says %v", facts)
	}
	obj.Spec.From = "old"
	if w, _ = p.Plan(t.Context(), obj, "ann", "ChangeFailed", well.try); !strings.Contains(w.Objection, "now it fails too") {
		t.Errorf("what was put back is put back again: %q", w.Objection)
	}
	if facts := Condition(obj); len(facts) != 1 || facts[0].Status != metav1.ConditionTrue || facts[0].Reason != "ChangeFailed" {
		t.Errorf("it was put back, and says %v", facts)
	}
}

// A client that replaces the object removes the note. The revisions then tell that the spec was rolled back before.
func TestARollbackIsKnownWithoutItsNote(t *testing.T) {
	p, well := planner(), returning{end: lifecycle.First()}
	obj := failed(t, p)
	declare := func(from, by string) (w Plan[*enginetest.Object]) {
		t.Helper()
		obj.Spec.From, obj.Generation = from, obj.Generation+1
		_, err := p.Revisions.Save(t.Context(), obj, by, false)
		if err == nil {
			w, err = p.Plan(t.Context(), obj, by, "ChangeFailed", well.try)
		}
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if w := declare("new", "argocd"); w.Objection != "" {
		t.Fatalf("the first time: %q", w.Objection)
	}
	declare("old", Manager)
	if w := declare("new", "argocd"); w.Objection != "this spec was rolled back once, as revision 2, and was declared again." {
		t.Errorf("it is rolled back again: %q", w.Objection)
	}
	if w := declare("other", "argocd"); w.Objection != "" {
		t.Errorf("another spec: %q", w.Objection)
	}
}

// What the API server refuses is not asked of it again, until the object changes.
func TestRefusedReturn(t *testing.T) {
	p := planner()
	obj, well := failed(t, p), returning{end: lifecycle.First()}
	w, err := p.Plan(t.Context(), obj, "ann", "ChangeFailed", well.try)
	if err != nil {
		t.Fatal(err)
	}
	refused := p.Refuse(obj, w, "spec.from is immutable")
	if w, _ = p.Plan(t.Context(), obj, "ann", "ChangeFailed", well.try); w.Objection != refused || !strings.Contains(refused, "refuses revision 1: spec.from") {
		t.Errorf("it is %q, and was %q", w.Objection, refused)
	}
	obj.Generation = 3
	if w, err = p.Plan(t.Context(), obj, "ann", "ChangeFailed", well.try); err != nil || w.Objection != "" {
		t.Errorf("a change of the object: %q, %v", w.Objection, err)
	}
}

// Fields that cannot be set back stay, and the event says so.
func TestRetainedFields(t *testing.T) {
	p := planner()
	p.Retain = func(now, earlier *enginetest.Object) []string {
		earlier.Spec.From = now.Spec.From
		return []string{"spec.from stays new"}
	}
	w, err := p.Plan(t.Context(), failed(t, p), "ann", "ChangeFailed", returning{end: lifecycle.First()}.try)
	if err != nil || !strings.Contains(w.Objection, "differs only in what cannot be set back: spec.from stays new") {
		t.Errorf("it is %q, %v", w.Objection, err)
	}
	step := w.Step("a", "ann", "sale", lifecycle.Fail("ChangeFailed", "It is broken."))
	want := "Revision 2 (by ann) has failed and the policy sale puts revision 1 back, except that spec.from stays new. It failed with ChangeFailed: It is broken."
	if step.Message != want {
		t.Errorf("it says %q", step.Message)
	}
}
