package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

// stopped is the report of an experiment that a violation ended.
func stopped() experiment.Report {
	began := time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)
	span := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	return experiment.Report{
		Seed: 42, Began: began, Ended: began.Add(6 * time.Minute), Outcome: experiment.Violated,
		Limits:  experiment.Limits{Budget: 6, AtOnce: 1, For: span(time.Hour), Pause: span(10 * time.Second), HealWithin: span(5 * time.Minute), Lasting: span(20 * time.Second)},
		Message: "etcdcluster/e after pod-isolate of e-2-0: it has not healed within 5m0s: 2 of 3 pods are ready.",
		Acts: []experiment.Act{
			{
				Number: 1, At: began.Add(time.Second), Instance: "etcdcluster/e", Manipulation: "pod-evict", Sentence: "A drain evicts a Pod.",
				Objects: []string{"e-1-0"}, Outcome: experiment.Healed, HealedAfter: span(4100 * time.Millisecond), Pods: 3, LeastReady: 2,
				NotReadyFor: span(3 * time.Second), Lost: []string{"PersistentVolumeClaim e-1-0af3"}, Steps: []string{"Restart e-1 (PodMissing, Succeeded)"},
				Seen: []experiment.Seen{{After: span(1100 * time.Millisecond), What: "Ready=false MemberNotServing: e-1 does not serve; Governor waits for it."}},
			},
			{
				Number: 2, At: began.Add(20 * time.Second), Instance: "etcdcluster/e", Manipulation: "pod-isolate", Sentence: "A NetworkPolicy refuses all ingress.",
				Objects: []string{"e-2-0"}, Outcome: experiment.Violated, Message: "it has not healed within 5m0s: 2 of 3 pods are ready", Pods: 3, LeastReady: 2,
				NotReadyFor: span(5 * time.Minute), Lost: []string{},
			},
		},
		LeftOut:     []experiment.LeftOut{{Instance: "etcdcluster/e", Manipulation: "networkpolicy-edit-allow", Reason: "it cannot be done: it has no NetworkPolicy"}},
		NotMeasured: []string{"Requests of clients."},
	}
}

// The report has the same content in every format.
func TestChaosReportGolden(t *testing.T) {
	for _, format := range []string{formatText, "json", "yaml"} {
		var out bytes.Buffer
		m := &monkey{session: &session{IOStreams: genericclioptions.IOStreams{Out: &out}}, output: output{format: format}}
		r := stopped()
		if err := m.write(m.session, r, func() { m.print(r) }); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", "chaos."+format)
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if diff := cmp.Diff(string(want), out.String()); err != nil || diff != "" {
			t.Errorf("%s: %v %s", golden, err, diff)
		}
	}
}

func TestChosenManipulationsMustBeSafe(t *testing.T) {
	all, err := chosenFrom(experiment.Safe(), []string{"pod-evict", "configmap-edit-empty"})
	if err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	for _, name := range []string{"pod-force-delete", "persistentvolumeclaim-delete-background", "node-off", "nothing", ""} {
		if _, err := chosenFrom(experiment.Safe(), []string{name}); err == nil || !strings.Contains(err.Error(), "--only "+name+" is not known, or not safe: use pod-delete-background, ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
