package podset_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

func TestNext(t *testing.T) {
	cases := map[string]struct {
		reason   string
		replicas int32
		seen     string
		later    time.Duration
		want     string
	}{
		"Whole":             {"every pod is available", 3, "rrr", 0, "Settled AllAvailable: All 3 pods are available."},
		"None":              {"no pod is declared and none exists", 0, "", 0, "Settled ScaledToZero: spec.replicas is 0. Set spec.replicas to run pods."},
		"LeavingIsGone":     {"a pod that is being deleted does not count", 1, "rl", 0, "Settled AllAvailable: All 1 pods are available."},
		"Empty":             {"all pods are created in one step", 3, "", 0, "Proceed CreatePods web (TooFewPods): Creating 3 pods, 0 of 3 exist."},
		"TooFew":            {"a terminating pod is replaced before it is gone", 2, "rl", 0, "Proceed CreatePods web (TooFewPods): Creating 1 pod, 1 of 2 exist."},
		"TooMany":           {"a pod that has not started is deleted first", 1, "rs", 0, "Proceed DeletePods web (TooManyPods): Deleting 1 pod of 2, spec.replicas is 1: web-1."},
		"Starting":          {"a pod is starting", 2, "rs", 0, "Wait PodsReady web (PodsStarting): 1 of 2 pods are ready; the others are starting."},
		"Orphan":            {"an orphan is adopted before pods are counted", 1, "rn", 0, "Proceed Adopt web (LabelsMatch): Adopting web-1: their labels match this set and they have no controller."},
		"Stray":             {"a stray is released before a new pod is created", 2, "rt", 0, "Proceed Release web (LabelsChanged): Releasing web-1: their labels no longer match this set."},
		"Ended":             {"the first finished pod is replaced at once", 2, "re", 0, "Proceed ReplaceFinished web (PodsEnded): Removing 1 pod that finished (web-1) and creating 1 in their place."},
		"EndedNotMissed":    {"an excess finished pod is removed", 1, "ra", 0, "Proceed ReplaceFinished web (PodsEnded): Removing 1 pod that finished (web-1) and creating 0 in their place."},
		"EndedAgain":        {"a pod that finishes again is in backoff and keeps its place", 2, "ra", 0, "Wait BackoffOver web (PodsEndEarly): 1 pod finished soon after the start again: web-1. They are replaced after an increasing backoff. See their logs."},
		"EndedAgainLater":   {"the backoff is over", 2, "ra", 5 * time.Second, "Proceed ReplaceFinished web (PodsEnded): Removing 1 pod that finished (web-1) and creating 1 in their place."},
		"EndedAndTooFew":    {"other missing pods are created during a backoff", 3, "ra", 0, "Proceed CreatePods web (TooFewPods): Creating 1 pod, 1 of 3 exist."},
		"Outdated":          {"at least one pod may be unavailable", 2, "oo", 0, "Proceed ReplaceOutdated web (TemplateChanged): Replacing 1 pod of 2 that have an earlier template: web-0."},
		"OutdatedByTheRest": {"no other pod may be unavailable", 2, "os", 0, "Wait PodsReady web (PodsStarting): 1 of 2 pods are ready; the others are starting."},
		"OutdatedManyAway":  {"a quarter of the pods may be unavailable", 8, "oooooooo", 0, "Proceed ReplaceOutdated web (TemplateChanged): Replacing 2 pods of 8 that have an earlier template: web-0, web-1."},
		"OutdatedBroken":    {"unready pods do not count toward the limit", 4, "bbbo", 0, "Proceed ReplaceOutdated web (TemplateChanged): Replacing 3 pods of 4 that have an earlier template: web-0, web-1, web-2."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := podset.Planner{}.Next(set(c.replicas), world(c.seen), now.Add(c.later))
			if got.String() != c.want {
				t.Errorf("%s:\ngot  %s\nwant %s", c.reason, got, c.want)
			}
		})
	}
}

// No pod is deleted or created for a template that the API server rejects.
func TestRefusedTemplateDeletesNothing(t *testing.T) {
	for _, pods := range []string{"oo", "ob", "oe", "o"} {
		seen := world(pods)
		seen.Template = lifecycle.TemplateVerdict{Template: podset.Fingerprint(set(2)), Refusal: "spec.containers[0].image: Required value"}
		if d := (podset.Planner{}).Next(set(2), seen, now); d.Outcome != lifecycle.OutcomeBlocked || d.Reason != "TemplateRefused" || !d.Failed {
			t.Errorf("%s: %s", pods, d)
		}
	}
}

// What the API server says to one template is not said of another.
func TestRefusalOfAnotherTemplate(t *testing.T) {
	seen := world("oo")
	seen.Template = lifecycle.TemplateVerdict{Template: "earlier", Refusal: "spec.containers[0].image: Required value"}
	if d := (podset.Planner{}).Next(set(2), seen, now); d.Step.Name != podset.ReplaceOutdated {
		t.Errorf("the corrected template is not refused: %s", d)
	}
}

func TestPodProblemIsReported(t *testing.T) {
	cases := map[string]struct {
		trouble lifecycle.PodProblem
		age     time.Duration
		want    lifecycle.Outcome
	}{
		"Image":          {lifecycle.PodProblemImagePullBackOff, 0, lifecycle.OutcomeBlocked},
		"Container":      {lifecycle.PodProblemContainerCannotStart, 0, lifecycle.OutcomeBlocked},
		"Crash":          {lifecycle.PodProblemCrashLoopBackOff, 0, lifecycle.OutcomeBlocked},
		"NoNodeYet":      {lifecycle.PodProblemUnschedulable, 29 * time.Second, lifecycle.OutcomeWait},
		"NoNodeAfterAll": {lifecycle.PodProblemUnschedulable, 30 * time.Second, lifecycle.OutcomeBlocked},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := world("rs")
			w.Pods[1].Problem, w.Pods[1].Detail, w.Pods[1].Since = c.trouble, "it is so", now.Add(-c.age)
			d := podset.Planner{}.Next(set(2), w, now)
			if d.Outcome != c.want || c.want == lifecycle.OutcomeBlocked && d.Reason != string(c.trouble) {
				t.Errorf("got %s, want %s %s", d, c.want, c.trouble)
			}
			if c.want == lifecycle.OutcomeWait && d.Deadline != now.Add(time.Second) {
				t.Errorf("the deadline is %s", d.Deadline)
			}
		})
	}
}

// A pod that finishes repeatedly is replaced after 5 s, 10 s and so on up to 5 min.
func TestBackoffGrows(t *testing.T) {
	for attempt, want := range map[int]time.Duration{
		0: 0, 1: 5 * time.Second, 2: 10 * time.Second, 6: 160 * time.Second, 7: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		w := world("e")
		w.Pods[0].Attempt = attempt
		d := podset.Planner{}.Next(set(1), w, now)
		switch {
		case want == 0:
			if d.Outcome != lifecycle.OutcomeProceed {
				t.Errorf("attempt 0: %s", d)
			}
		case d.Outcome != lifecycle.OutcomeWait || d.Deadline.Sub(now) != want:
			t.Errorf("attempt %d: %s until %s, want a backoff of %s", attempt, d, d.Deadline, want)
		}
		if replacements := podset.Replacements("web", w, podset.Finished(w, 1), 1); replacements[0].Attempt != attempt+1 {
			t.Errorf("the replacement of attempt %d is attempt %d", attempt, replacements[0].Attempt)
		}
	}
	w := world("a")
	w.Pods[0].StartedAt = now.Add(-10 * time.Minute)
	if d := (podset.Planner{}).Next(set(1), w, now); d.Outcome != lifecycle.OutcomeProceed {
		t.Errorf("the end of a long run is no fault: %s", d)
	}
}

func TestMaxUnavailable(t *testing.T) {
	number, share := intstr.FromInt32(3), intstr.FromString("50%")
	for want, unavailable := range map[string]*intstr.IntOrString{"3": &number, "5": &share, "2": nil} {
		s := set(10)
		s.Spec.MaxUnavailable = unavailable
		d := podset.Planner{}.Next(s, world("oooooooooo"), now)
		if d.Step.Args["pods"] != want || d.Step.Class != lifecycle.ClassDisruptive {
			t.Errorf("%v: %s replaces %s pods, want %s", unavailable, d, d.Step.Args["pods"], want)
		}
	}
}

// What may end the service needs an approval: all pods go, or pods that may still serve.
func TestDisruptiveSteps(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int32
		seen     string
		want     lifecycle.Class
	}{
		"ToZero":        {0, "rr", lifecycle.ClassDisruptive},
		"ToZeroBroken":  {0, "bb", lifecycle.ClassRoutine},
		"ToOne":         {1, "rr", lifecycle.ClassRoutine},
		"OutdatedReady": {2, "oo", lifecycle.ClassDisruptive},
		"OutdatedAway":  {2, "bo", lifecycle.ClassDisruptive},
	} {
		if d := (podset.Planner{}).Next(set(c.replicas), world(c.seen), now); d.Step.Class != c.want {
			t.Errorf("%s: %s is %s, want %s", name, d, d.Step.Class, c.want)
		}
	}
}

// The gate holds a step that replaces more pods than the planner chooses.
func TestKeepsAvailable(t *testing.T) {
	w := world("oooo")
	d := podset.Planner{}.Next(set(4), w, now)
	judge := func(s lifecycle.Step) []lifecycle.Refusal {
		during, _ := podset.Planner{}.Effect(set(4), w, s)
		return lifecycle.Judge(podset.Gates(), set(4), w, during, s)
	}
	if held := judge(d.Step); len(held) > 0 {
		t.Errorf("the planner's own step is held: %v", held)
	}
	d.Step.Args["pods"] = "2"
	if held := judge(d.Step); len(held) != 1 {
		t.Error("a step that replaces too many pods passes")
	}
}

// A pod that was relabelled is drift: no policy for spec changes applies.
func TestRelabelledPodIsDrift(t *testing.T) {
	for _, pods := range []string{"rt", "rn"} {
		if d := (podset.Planner{}).Next(set(2), world(pods), now); d.Step.Cause != lifecycle.CauseDrift {
			t.Errorf("%s: the cause of %s is %s", pods, d.Step, d.Step.Cause)
		}
	}
}
