package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/preview"
)

func TestEdits(t *testing.T) {
	cases := map[string]struct {
		reason string
		set    []string
		want   map[string]any
	}{
		"Number":  {"a size is a number", []string{"spec.size=5"}, map[string]any{"spec": map[string]any{"size": int64(5)}}},
		"Version": {"a version is none", []string{"spec.version=3.6"}, map[string]any{"spec": map[string]any{"version": "3.6"}}},
		"Quoted":  {"quotes make a string of anything", []string{`.spec.a="5"`}, map[string]any{"spec": map[string]any{"a": "5"}}},
		"Bool":    {"true and null are themselves", []string{"a=true", "b=null"}, map[string]any{"a": true, "b": nil}},
		"Several": {"edits come together", []string{"a.b=1", "a.c=x=y"}, map[string]any{"a": map[string]any{"b": int64(1), "c": "x=y"}}},
		"NoValue": {"an edit has a value", []string{"spec.size"}, nil},
		"NoKey":   {"and no hole in its path", []string{"spec..size=1"}, nil},
		"List":    {"lists need a file", []string{"spec.a[0]=1"}, nil},
		"Clash":   {"two edits must not contradict", []string{"a=1", "a.b=2"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := edits(c.set)
			if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) {
				t.Errorf("%s: %v, %s", c.reason, err, diff)
			}
		})
	}
}

// A plan can be read at three in the morning.
func TestPlanText(t *testing.T) {
	var out bytes.Buffer
	p := &plan{session: &session{IOStreams: genericclioptions.IOStreams{Out: &out}}}
	obj := &unstructured.Unstructured{Object: map[string]any{"kind": "EtcdCluster", "metadata": map[string]any{"name": "e", "namespace": "n"}}}
	step := func(name string, class lifecycle.Class) lifecycle.Step {
		return lifecycle.Step{Name: name, Target: "e-1", Class: class, Reason: "Why", Message: "This is why."}
	}
	r := preview.Report{Plan: preview.Plan{
		Outcome: lifecycle.OutcomeWait,
		Steps: []preview.Step{
			{Step: step("Restart", lifecycle.ClassDisruptive), Impact: "2 of 3 voters serve, none may fail", Expected: metav1.Duration{Duration: 1500 * time.Millisecond}},
			{Step: step("Serving", ""), IsWait: true, Expected: metav1.Duration{Duration: 90 * time.Second}},
			{Step: step("Remove", lifecycle.ClassDestructive), Held: []lifecycle.Refusal{{Gate: "KeepsQuorum", Message: "only 1 of 3."}}},
		},
	}, Paused: true, Unknowns: []string{"The outcome is unknown."}, Resources: []preview.Resource{
		{Verb: "Configured", Kind: "Service", Name: "e", Fields: []preview.Field{{Path: "spec.type", From: `"A"`, To: `"B"`}, {Path: "spec.x", To: "1"}}},
		{Verb: "Configured", Kind: "Secret", Name: "e", Fields: []preview.Field{{Path: "data.key"}}},
	}}
	p.tell(&target{Unstructured: obj}, r)
	want := `etcdcluster/e in n: 2 steps, of which 1 destructive and 1 disruptive
It is paused: Governor takes no step until it is resumed.
   1. Restart e-1 (Disruptive), usually 1.5s
      Why: This is why.
      impact: 2 of 3 voters serve, none may fail
      … until Serving e-1, usually 1m30s
   2. Remove e-1 (Destructive)
      Why: This is why.
      HELD by KeepsQuorum: only 1 of 3.
    ~ change Service e
        spec.type: "A" → "B"
        spec.x: (none) → 1
    ~ change Secret e
        data.key
Then: it waits until the gate opens.
Not known: The outcome is unknown.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// What failed for a while says until when, and a story that ends with it has no pause there.
func TestAStepThatFailedAgainAndAgain(t *testing.T) {
	e := history.Entry{
		At: time.Unix(0, 0), Last: time.Unix(7200, 0), Result: history.ResultFailed, Message: "exceeded quota",
		Step: lifecycle.Step{Name: "StartMember", Target: "e-1", Reason: "MemberAdded", Message: "It is started."},
	}
	want := "The step StartMember e-1, because of MemberAdded: It is started, failed after 0s, and again until 1970-01-01 02:00:00 UTC: exceeded quota"
	if got := sentence(e); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := len(chapter([]history.Entry{e, {At: time.Unix(7260, 0)}})); n != 2 {
		t.Errorf("the chapter has %d entries", n)
	}
}

// The gates that refuse are named, and the sentence ends with one full stop.
func TestARefusal(t *testing.T) {
	e := history.Entry{
		Result: history.ResultRefused, Message: "nights/MaintenanceWindow: closed", HeldBy: "nights/MaintenanceWindow", Policies: []string{"nights", "pace"},
		Step:  lifecycle.Step{Name: "Restart", Target: "e-1", Reason: "VersionChanged", Message: "It is restarted."},
		Gates: []history.GateResult{{Gate: "KeepsQuorum"}, {Gate: "nights/MaintenanceWindow", Objection: "closed"}},
	}
	if got := passed(e); got != "KeepsQuorum, pace" {
		t.Errorf("it is said that it passed %s", got)
	}
	if got, want := sentence(e), "It did not take the step Restart e-1, due because of VersionChanged: It is restarted: nights/MaintenanceWindow: closed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A history begins where the change began: the same generation, without a long pause.
func TestHistoryBeginsWithTheChange(t *testing.T) {
	at := func(minute int, generation int64) history.Entry {
		return history.Entry{At: time.Unix(int64(minute)*60, 0), Generation: generation}
	}
	slow := at(0, 2)
	slow.Waits = []history.WaitRecord{{Duration: 20 * time.Minute}}
	cases := map[string]struct {
		reason string
		all    []history.Entry
		want   int
	}{
		"None":       {"nothing has happened", nil, 0},
		"Generation": {"an earlier wish is another story", []history.Entry{at(0, 1), at(1, 2), at(2, 2)}, 2},
		"Pause":      {"so is a repair long after", []history.Entry{at(0, 2), at(60, 2)}, 1},
		"Waiting":    {"waiting is no pause", []history.Entry{slow, at(25, 2)}, 2},
	}
	for name, c := range cases {
		if got := len(chapter(c.all)); got != c.want {
			t.Errorf("%s: %s: %d entries, want %d", name, c.reason, got, c.want)
		}
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		4 * time.Millisecond: "4ms", 1500 * time.Millisecond: "1.5s", 75 * time.Second: "1m15s", 95 * time.Minute: "1h35m",
	} {
		if got := brief(d); got != want {
			t.Errorf("%v is printed as %q, want %q", d, got, want)
		}
	}
}
