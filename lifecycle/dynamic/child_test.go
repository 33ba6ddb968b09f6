package dynamic_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/dynamic"
)

func TestChildOf(t *testing.T) {
	condition := func(kind, status, message string) string {
		return `{"type":"` + kind + `","status":"` + status + `","message":"` + message + `"}`
	}
	cases := map[string]struct {
		reason, meta, status string
		want                 dynamic.Child
		outcome              lifecycle.Outcome
	}{
		"Plain":       {"a kind without conditions", `{}`, `{}`, dynamic.Child{Exists: true, Ready: true}, lifecycle.OutcomeNone},
		"Ready":       {"its controller is done", `{"generation":2}`, `{"observedGeneration":2,"conditions":[` + condition("Ready", "True", "fine") + `]}`, dynamic.Child{Exists: true, Ready: true}, lifecycle.OutcomeNone},
		"NotReady":    {"its controller works", `{"generation":2}`, `{"observedGeneration":2,"conditions":[` + condition("Ready", "False", "1 of 2") + `]}`, dynamic.Child{Exists: true, Message: "1 of 2"}, lifecycle.OutcomeWait},
		"Reconciling": {"it is ready and being changed", `{}`, `{"conditions":[` + condition("Ready", "True", "") + `,` + condition("Reconciling", "True", "") + `]}`, dynamic.Child{Exists: true}, lifecycle.OutcomeWait},
		"Old":         {"its status is about an earlier spec", `{"generation":3}`, `{"observedGeneration":2,"conditions":[` + condition("Ready", "True", "fine") + `]}`, dynamic.Child{Exists: true, Message: "its controller has not seen its present spec"}, lifecycle.OutcomeWait},
		"Stalled":     {"its controller waits for a person", `{}`, `{"conditions":[` + condition("Stalled", "True", "Raise the quota.") + `]}`, dynamic.Child{Exists: true, Stalled: true, Message: "Raise the quota."}, lifecycle.OutcomeBlocked},
		"Deleting":    {"it goes", `{"deletionTimestamp":"2026-01-01T12:00:00Z"}`, `{}`, dynamic.Child{}, lifecycle.OutcomeWait},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(`{"apiVersion":"g/v1","kind":"Thing","metadata":`+c.meta+`,"status":`+c.status+`}`), u); err != nil {
				t.Fatal(err)
			}
			u.SetName("a")
			c.want.Kind, c.want.Name = "Thing", "a"
			got := dynamic.ChildOf(u)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
			d := got.Wait("Thing", "a")
			if d.Outcome != c.outcome {
				t.Errorf("%s: %s", c.reason, d)
			}
			if after := got.After(d.Step); d.Outcome == lifecycle.OutcomeWait && after.Wait("Thing", "a").IsSet() {
				t.Errorf("the wait ends as %+v", after)
			}
		})
	}
	if after := (dynamic.Child{}).After((dynamic.Child{}).Wait("Thing", "a").Step); !after.Ready || after.Name != "a" {
		t.Errorf("a child that does not exist yet becomes %+v", after)
	}
	other := dynamic.Child{Name: "b"}
	if other.After(lifecycle.Step{Name: dynamic.ChildReady, Target: "a"}) != other || other.After(lifecycle.Step{Name: "Other", Target: "b"}) != other {
		t.Error("a foreign step changes it")
	}
}
