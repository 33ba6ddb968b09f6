package dynamic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/dynamic"
)

var kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}

var _ lifecycle.Resource = &dynamic.Object{}

const stored = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":3,"name":"a"},"spec":{"size":2},` +
	`"status":{"conditions":[{"lastTransitionTime":"2026-01-01T12:00:00Z","message":"m","reason":"R","status":"True","type":"Ready"}],"observedGeneration":3,"size":1}}`

func parse(t *testing.T, raw string) *dynamic.Object {
	t.Helper()
	o := dynamic.New(kind)()
	if err := json.Unmarshal([]byte(raw), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func text(t *testing.T, o any) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

func TestObjectKeepsAllFields(t *testing.T) {
	o := parse(t, stored)
	generation, conditions := o.StatusFields()
	if *generation != 3 || len(*conditions) != 1 || (*conditions)[0].Reason != "R" || o.GetGeneration() != 3 {
		t.Errorf("read %d %v", *generation, *conditions)
	}
	if diff := cmp.Diff(map[string]any{"size": int64(1)}, o.Status()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(stored, text(t, o)); diff != "" {
		t.Error(diff)
	}
	if copied := o.DeepCopyObject(); !equality.Semantic.DeepEqual(o, copied) || text(t, copied) != stored {
		t.Errorf("the copy is %s", text(t, copied))
	}
}

// The engine writes its fields, and a planner replaces the rest of the status.
func TestStatusIsOfTwoWriters(t *testing.T) {
	o := parse(t, stored)
	before := o.DeepCopy()
	o.SetStatus(map[string]any{"size": int64(2), "conditions": []any{"of the planner"}, "observedGeneration": int64(9)})
	generation, conditions := o.StatusFields()
	*generation, (*conditions)[0].Reason = 4, "S"
	want := strings.NewReplacer(`"reason":"R"`, `"reason":"S"`, `"observedGeneration":3,"size":1`, `"observedGeneration":4,"size":2`).Replace(stored)
	if diff := cmp.Diff(want, text(t, o)); diff != "" {
		t.Error(diff)
	}
	if text(t, before) != stored {
		t.Errorf("the copy has changed: %s", text(t, before))
	}
	if o.SetStatus(nil); o.Status() != nil {
		t.Errorf("the status is %v", o.Status())
	}
}

func TestContentIsNotShared(t *testing.T) {
	o := parse(t, stored)
	o.UnstructuredContent()["spec"] = "changed"
	o.UnstructuredContent()["status"].(map[string]any)["size"] = "changed"
	content := o.UnstructuredContent()
	other := dynamic.New(kind)()
	other.SetUnstructuredContent(content)
	other.SetStatus(nil)
	delete(other.Object, "spec")
	if text(t, content) != stored || text(t, o) != stored {
		t.Errorf("the content is %s, the object is %s", text(t, content), text(t, o))
	}
}

func TestObjectWithoutStatus(t *testing.T) {
	const young = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"}}`
	if got := text(t, parse(t, young)); got != young {
		t.Errorf("got %s", got)
	}
	var none dynamic.Object
	if content := none.UnstructuredContent(); len(content) != 0 {
		t.Errorf("got %v", content)
	}
	if e := parse(t, young).NewEmptyInstance(); e.GetObjectKind().GroupVersionKind() != kind || e.IsList() {
		t.Errorf("the empty instance is %v", e)
	}
}

// Another writer may have left what is no condition; a decoder may know no whole numbers.
func TestForeignStatusIsRead(t *testing.T) {
	o := dynamic.New(kind)()
	o.SetUnstructuredContent(map[string]any{"status": map[string]any{
		"observedGeneration": float64(7), "conditions": []any{"x", map[string]any{"type": 1.5}, map[string]any{"type": "Ready"}},
	}})
	if diff := cmp.Diff([]metav1.Condition{{Type: "Ready"}}, o.Conditions); diff != "" || o.ObservedGeneration != 7 {
		t.Errorf("got %d %s", o.ObservedGeneration, diff)
	}
}

// The engine writes an earlier spec over the present one by this conversion.
func TestObjectConverts(t *testing.T) {
	o := parse(t, stored)
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	all["spec"] = map[string]any{"size": int64(1)}
	other := dynamic.New(kind)()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all, other); err != nil {
		t.Fatal(err)
	}
	if text(t, o) != stored || text(t, other) != strings.Replace(stored, `"size":2`, `"size":1`, 1) {
		t.Errorf("%s became %s", text(t, o), text(t, other))
	}
}
