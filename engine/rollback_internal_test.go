package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/engine/internal/caching"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
)

// returning is a planner whose way back is one step, and then what is given.
type returning struct {
	class  lifecycle.Class
	end    lifecycle.Decision
	render error
}

func (p returning) Resources(*fake, int) ([]lifecycle.Object, error) { return nil, p.render }

func (p returning) Next(_ *fake, seen int, _ time.Time) lifecycle.Decision {
	if seen == 0 {
		return lifecycle.Proceed(lifecycle.Step{Name: "Restart", Target: "m", Class: p.class})
	}
	return p.end
}

func (returning) Effect(_ *fake, seen int, _ lifecycle.Step) (int, int) { return seen, seen + 1 }
func (returning) Status(*fake, int)                                     {}
func (returning) Conditions(*fake, int, lifecycle.Decision) []lifecycle.Condition {
	return nil
}

func TestWhatBarsTheWayBack(t *testing.T) {
	cases := map[string]struct {
		reason  string
		planner returning
		version string
		want    string
	}{
		"Open":         {"what can be undone and ends well", returning{class: lifecycle.ClassDisruptive, end: lifecycle.First()}, "x/v1", ""},
		"Irreversible": {"no step may be for good", returning{class: lifecycle.ClassIrreversible, end: lifecycle.First()}, "x/v1", "the step Restart m, which cannot be undone"},
		"Blocked":      {"it must end well", returning{end: lifecycle.Block("VersionRefused", "It is older.")}, "x/v1", "does not lead to the end: It is older."},
		"Unrenderable": {"it must be understood", returning{render: errors.New("no")}, "x/v1", "cannot be rendered: no"},
		"Version":      {"also by this operator", returning{end: lifecycle.First()}, "x/v0", "is written in x/v0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := &engine[*fake, int]{
				app: App[*fake, int]{Planner: c.planner}, gvk: schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Fake"},
				operator: &Operator{options: Options{Now: func() time.Time { return time.Unix(0, 0) }}},
			}
			w := rollbackPlan[*fake]{to: revision.Revision{Number: 7, APIVersion: c.version}, want: &fake{}}
			got := e.objectionTo(&reconciliation[*fake, int]{}, w)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || c.want != "" && !strings.Contains(got, "revision 7") {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestThePatchBackReplacesTheWholeSpec(t *testing.T) {
	obj := &fake{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{"kept": "yes"}}}
	w := rollbackPlan[*fake]{note: rollbackNote{Failed: 3, To: 2, Reason: "ChangeFailed"}, to: revision.Revision{Spec: json.RawMessage(`{"size":1}`)}}
	raw, err := w.patch(obj)
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

func TestTheAuthorOfASpec(t *testing.T) {
	at := func(second int64) *metav1.Time { return new(metav1.Unix(second, 0)) }
	spec, other := metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`), metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{}}}`)
	key := types.NamespacedName{Name: "e"}
	var a caching.SpecManagers
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
	var a caching.SpecManagers
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
