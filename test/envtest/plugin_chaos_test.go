package envtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
	"github.com/governor-dev/governor/test/fakeapp"
)

// optIn permits experiments in the namespace.
func optIn(t *testing.T, namespace string) {
	t.Helper()
	ns, err := get(t, &corev1.Namespace{}, "", namespace)
	must(t, err)
	ns.Labels[experiment.OptInLabel] = experiment.OptInValue
	must(t, api.Update(t.Context(), ns))
}

// A forbidden experiment is rejected. The message names the flag or the field, and what is
// allowed.
func TestChaosRefusals(t *testing.T) {
	namespace, _ := settledRing(t, 1)
	limits := []string{"--budget", "1", "--for", "1m"}
	cases := map[string][]string{
		"--budget is not set: an experiment needs --budget": {"ring/r"},
		"--for is not set":                                            {"ring/r", "--budget", "1"},
		"--budget is 0: it must be from 1 to 1000":                    {"ring/r", "--budget", "0", "--for", "1m"},
		"--budget is -1: it must be from 1":                           {"ring/r", "--budget", "-1", "--for", "1m"},
		"--for is -1m0s: it must be from 1s":                          {"ring/r", "--budget", "1", "--for", "-1m"},
		"--at-once is 0: it must be from 1 to 10":                     append([]string{"ring/r", "--at-once", "0"}, limits...),
		"--heal-within is 0s":                                         append([]string{"ring/r", "--heal-within", "0s"}, limits...),
		"--only pod-kill is not known, or not safe: use pod-delete":   append([]string{"ring/r", "--only", "pod-kill"}, limits...),
		"no instance is named":                                        limits,
		"no name was specified":                                       append([]string{"ring"}, limits...),
		"-l a=b selects no object of ring":                            append([]string{"ring", "-l", "a=b"}, limits...),
		`"x" not found`:                                               append([]string{"ring/x"}, limits...),
		"configmap/r is not run by Governor; Governor runs: ":         append([]string{"configmap/r"}, limits...),
		"its label governor.dev/chaos must be allowed: kubectl label": append([]string{"ring/r"}, limits...),
	}
	for want, args := range cases {
		expect(t, namespace, 1, []string{want}, append([]string{"chaos"}, args...)...)
	}
	// A dry run needs the permission too, and the label's value matters.
	expect(t, namespace, 1, []string{"does not permit experiments"}, append([]string{"chaos", "ring/r", "--dry-run"}, limits...)...)
	if events := chaosEvents(t, namespace); len(events) > 0 {
		t.Errorf("something was done: %v", events)
	}
}

func chaosEvents(t *testing.T, namespace string) (said []string) {
	t.Helper()
	list := &eventsv1.EventList{}
	must(t, api.List(t.Context(), list, client.InNamespace(namespace)))
	for _, e := range list.Items {
		if e.ReportingController == "kubectl-governor" {
			said = append(said, e.Reason+" "+e.Note)
		}
	}
	return said
}

// An experiment edits objects that the operator restores. The report and the events say
// so. The history is never changed.
func TestChaosRunsAgainstARing(t *testing.T) {
	namespace, _ := settledRing(t, 1)
	optIn(t, namespace)
	limits := []string{"--budget", "3", "--for", "2m", "--pause", "0s", "--seed", "7"}
	run := append([]string{"chaos", "ring/r"}, limits...)
	plan := expect(t, namespace, 0, []string{"Nothing was done.", "Seed 7."}, append(run, "--dry-run")...)
	before, err := get(t, &corev1.ConfigMap{}, namespace, "r.ring-history")
	must(t, err)
	said := expect(t, namespace, 0, nil, append(run, "--reason", "a game day", "-o", "json")...)
	var r experiment.Report
	must(t, json.Unmarshal([]byte(said), &r))
	if len(r.Acts) != 3 || r.Outcome != experiment.Completed || r.Seed != 7 || len(r.NotMeasured) == 0 || len(r.LeftOut) == 0 {
		t.Errorf("the report is %s", said)
	}
	for _, a := range r.Acts {
		if a.Outcome != experiment.Healed || strings.Contains(fmt.Sprint(a.Objects), "history") || !strings.Contains(plan, a.Manipulation) {
			t.Errorf("act %+v; it was planned as\n%s", a, plan)
		}
	}
	after, err := get(t, &corev1.ConfigMap{}, namespace, "r.ring-history")
	must(t, err)
	if after.UID != before.UID {
		t.Error("the history was deleted")
	}
	if events := strings.Join(chaosEvents(t, namespace), "\n"); strings.Count(events, "ChaosBegins") != 3 || strings.Count(events, "ChaosEnds Healed") != 3 ||
		!strings.Contains(events, "Reason: a game day") || !strings.Contains(events, "act 3 of 3 of the chaos experiment with seed 7") {
		t.Errorf("the events are\n%s", events)
	}
}

// A freeze holds an experiment, as it holds changes.
func TestChaosWaitsForPolicies(t *testing.T) {
	namespace, _ := settledRing(t, 1)
	optIn(t, namespace)
	run := []string{"chaos", "ring/r", "--budget", "1", "--for", "2s"}
	p := newPolicy(t, namespace, "audit", func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "audit"} })
	expect(t, namespace, 0, []string{"TimeUp: 0 of 1 manipulations", "the policy \"" + p.Name + "\" holds it: frozen (audit)"}, run...)
	changePolicy(t, p, func(s *v1alpha1.OperationPolicySpec) { s.Freeze, s.Paused = nil, true })
	expect(t, namespace, 0, []string{"ring/r was waited for: it is paused"}, run...)
	if events := chaosEvents(t, namespace); len(events) > 0 {
		t.Errorf("something was done: %v", events)
	}
}

// An act of another experiment is waited for, also when the program that announced it was killed; an instance that is named
// twice is one.
func TestChaosActsOnceAtATime(t *testing.T) {
	namespace, _ := settledRing(t, 1)
	optIn(t, namespace)
	ring, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	begun := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r-chaos-other"}, EventTime: metav1.NowMicro(),
		ReportingController: "kubectl-governor", ReportingInstance: "another", Action: "pod-delete-background", Reason: "ChaosBegins",
		Type: corev1.EventTypeNormal, Note: "bob does pod-delete-background of r-0",
		Regarding: corev1.ObjectReference{APIVersion: "test.governor.dev/v1", Kind: "Ring", Namespace: namespace, Name: "r", UID: ring.UID},
	}
	must(t, api.Create(t.Context(), begun))
	run := []string{"chaos", "ring/r", "ring/r", "--at-once", "2", "--budget", "2", "--only", "configmap-delete-background"}
	expect(t, namespace, 0, []string{"ring/r was waited for: another experiment is under way since", "bob does pod-delete-background of r-0"}, append(run, "--for", "2s")...)
	must(t, api.Delete(t.Context(), begun))
	said := expect(t, namespace, 0, nil, append(run, "--for", "2m", "--pause", "0s", "-o", "json")...)
	var r experiment.Report
	must(t, json.Unmarshal([]byte(said), &r))
	if len(r.Acts) != 2 || r.Acts[1].At.Before(r.Acts[0].At.Add(r.Acts[0].HealedAfter.Duration)) {
		t.Errorf("the acts are %+v", r.Acts)
	}
}

// Without an operator there is no recovery: the experiment ends, and names the failure. It
// needs only the user's permissions, and does not act where it cannot write an event.
func TestChaosEndsWhenNothingHeals(t *testing.T) {
	namespace, op := settledRing(t, 1)
	optIn(t, namespace)
	op.stop()
	run := []string{"chaos", "ring/r", "--for", "1m", "--heal-within", "2s", "--only", "configmap-delete-background"}
	said := expect(t, namespace, 1, []string{
		"Violated", "it has not healed within 2s: r", " is not as before", "error: violated: ring/r after configmap-delete-background of r",
	}, append(run, "--budget", "5")...)
	if n := strings.Count(said, "ChaosBegins"); n > 1 {
		t.Errorf("it went on after the violation:\n%s", said)
	}
	expect(t, namespace, 1, []string{"forbidden"}, append(run, "--budget", "1", "--as", "stranger")...)
}

// Ctrl-C ends an experiment with a report.
func TestChaosIsInterrupted(t *testing.T) {
	namespace, _ := settledRing(t, 1)
	optIn(t, namespace)
	dir, err := built()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), dir+"/kubectl-governor", "-n", namespace, "--kubeconfig", dir+"/kubeconfig",
		"chaos", "ring/r", "--budget", "9", "--for", "1h", "--pause", "1h",
		"--only", "configmap-delete-background") // envtest has no garbage collector for the others
	var said strings.Builder
	cmd.Stdout = &said
	must(t, cmd.Start())
	eventually(t, "the first act has ended", func() error {
		if !strings.Contains(strings.Join(chaosEvents(t, namespace), "\n"), "ChaosEnds") {
			return errNotYet
		}
		return nil
	})
	must(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	if !strings.Contains(said.String(), "Interrupted: 1 of 9 manipulations") {
		t.Errorf("it says\n%s", said.String())
	}
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, "True", "AsDeclared")
}
