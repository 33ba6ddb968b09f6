package memcached_test

import (
	"fmt"
	"testing"
	"time"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/lifecycle"
)

var noon = time.Unix(1_700_000_000, 0).UTC()

func instance(size int32) *cachev1.Memcached {
	m := &cachev1.Memcached{}
	m.Name, m.Namespace = "m", "ns"
	m.Spec.Size, m.Spec.ContainerPort = size, 11211
	return m
}

func rolled(n int32) memcached.Rollout {
	return memcached.Rollout{Current: true, Updated: n, Total: n}
}

func pods(states ...memcached.Pod) []memcached.Pod {
	for i := range states {
		states[i].Name = fmt.Sprintf("m-%d", i)
	}
	return states
}

var answers = memcached.Pod{Ready: true}

func TestNext(t *testing.T) {
	quota := rolled(1)
	quota.Refused = "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1"
	policy := rolled(1)
	policy.Refused = "violates PodSecurity"
	stuck := rolled(2)
	stuck.Stuck = true
	lost := memcached.Pod{Problem: lifecycle.PodProblemUnschedulable, Since: noon.Add(-time.Minute)}
	looking := memcached.Pod{Problem: lifecycle.PodProblemUnschedulable, Since: noon.Add(-time.Second)}
	cases := map[string]struct {
		reason  string
		size    int32
		seen    memcached.World
		outcome lifecycle.Outcome
		want    string
	}{
		"Nothing":      {"the Deployment is being created", 2, memcached.World{}, lifecycle.OutcomeWait, "RollingOut"},
		"All":          {"forEachWorld server is ready", 2, memcached.World{Rollout: rolled(2), Pods: pods(answers, answers)}, lifecycle.OutcomeSettled, "AllAnswer"},
		"Zero":         {"no server is wanted", 0, memcached.World{Rollout: rolled(0)}, lifecycle.OutcomeSettled, "ScaledToZero"},
		"NotAnswering": {"a pod that is not ready does not count", 1, memcached.World{Rollout: rolled(1), Pods: pods(memcached.Pod{})}, lifecycle.OutcomeWait, "RollingOut"},
		"OldStatus": {
			"a status about an older spec does not count", 1,
			memcached.World{Rollout: memcached.Rollout{Updated: 1, Total: 1}, Pods: pods(answers)}, lifecycle.OutcomeWait, "RollingOut",
		},
		"OldPodsStay": {
			"a pod of the old template is still ready", 1,
			memcached.World{Rollout: memcached.Rollout{Current: true, Updated: 1, Total: 2}, Pods: pods(answers, answers)},
			lifecycle.OutcomeWait, "RollingOut",
		},
		"Leaving": {
			"a pod that is being deleted does not count", 1,
			memcached.World{Rollout: rolled(1), Pods: pods(memcached.Pod{Ready: true, Terminating: true})}, lifecycle.OutcomeWait, "RollingOut",
		},
		"LeavingBeside": {
			"a pod that is being deleted does not block settling", 1,
			memcached.World{Rollout: rolled(1), Pods: pods(answers, memcached.Pod{Terminating: true, Problem: lifecycle.PodProblemCrashLoopBackOff})},
			lifecycle.OutcomeSettled, "AllAnswer",
		},
		"Quota":      {"the quota is named", 2, memcached.World{Rollout: quota, Pods: pods(answers)}, lifecycle.OutcomeBlocked, "QuotaExceeded"},
		"Policy":     {"any other rejection is reported", 2, memcached.World{Rollout: policy, Pods: pods(answers)}, lifecycle.OutcomeBlocked, "PodsRefused"},
		"Image":      {"an image is missing", 1, memcached.World{Rollout: rolled(1), Pods: pods(memcached.Pod{Problem: lifecycle.PodProblemImagePullBackOff})}, lifecycle.OutcomeBlocked, "ImagePullBackOff"},
		"Config":     {"a container cannot start", 1, memcached.World{Rollout: rolled(1), Pods: pods(memcached.Pod{Problem: lifecycle.PodProblemContainerCannotStart})}, lifecycle.OutcomeBlocked, "ContainerCannotStart"},
		"Crash":      {"memcached exits repeatedly", 1, memcached.World{Rollout: rolled(1), Pods: pods(memcached.Pod{Problem: lifecycle.PodProblemCrashLoopBackOff})}, lifecycle.OutcomeBlocked, "CrashLoopBackOff"},
		"Looking":    {"an autoscaler has time to add a node", 1, memcached.World{Rollout: rolled(1), Pods: pods(looking)}, lifecycle.OutcomeWait, "Scheduling"},
		"NoNode":     {"after the grace period the pod blocks", 1, memcached.World{Rollout: rolled(1), Pods: pods(lost)}, lifecycle.OutcomeBlocked, "Unschedulable"},
		"Stuck":      {"the progress deadline has passed", 2, memcached.World{Rollout: stuck, Pods: pods(answers, memcached.Pod{})}, lifecycle.OutcomeBlocked, "RolloutStuck"},
		"Precedence": {"a missing image outranks a missing node", 2, memcached.World{Rollout: rolled(2), Pods: pods(lost, memcached.Pod{Problem: lifecycle.PodProblemImagePullBackOff})}, lifecycle.OutcomeBlocked, "ImagePullBackOff"},
		"ScaleOut":   {"more pods are declared than exist", 3, memcached.World{Rollout: rolled(2), Pods: pods(answers, answers)}, lifecycle.OutcomeWait, "RollingOut"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := memcached.Planner{}.Next(instance(c.size), c.seen, noon)
			if d.Outcome != c.outcome || d.Reason != c.want {
				t.Errorf("%s: got %s, want %s %s", c.reason, d, c.outcome, c.want)
			}
		})
	}
}

// A rollout may be in progress while all servers are ready. The message names what is
// missing.
func TestRolloutMessageNamesWhatIsMissing(t *testing.T) {
	rollout := func(updated, total int32) memcached.Rollout {
		return memcached.Rollout{Current: true, Updated: updated, Total: total}
	}
	two := pods(answers, answers)
	cases := map[string]struct {
		reason string
		seen   memcached.World
		want   string
	}{
		"NotObserved": {
			"the Deployment controller has not observed the spec",
			memcached.World{Rollout: memcached.Rollout{Updated: 2, Total: 2}, Pods: two},
			"2 of 2 servers answer; waiting for the Deployment controller to observe the latest change.",
		},
		"Upgrade": {
			"old servers stay until new ones are ready", memcached.World{Rollout: rollout(1, 3), Pods: pods(answers, answers, answers)},
			"3 of 2 servers answer; waiting for 1 of 2 new pods.",
		},
		"Starting": {
			"a new server starts", memcached.World{Rollout: rollout(2, 2), Pods: pods(answers, memcached.Pod{})},
			"1 of 2 servers answer; waiting for the other pods to become ready.",
		},
		"Lost": {
			"a lost server is not counted", memcached.World{Rollout: rollout(2, 2), Pods: pods(answers)},
			"1 of 2 servers answer; waiting for the other pods to become ready.",
		},
		"ScaleIn": {
			"one pod is excess", memcached.World{Rollout: rollout(3, 3), Pods: pods(answers, answers, answers)},
			"3 of 2 servers answer; waiting for 1 excess pods to terminate.",
		},
		"OldPodsStay": {
			"one old pod is excess although the Deployment does not count it", memcached.World{Rollout: rolled(2), Pods: pods(answers, answers, memcached.Pod{})},
			"2 of 2 servers answer; waiting for 1 excess pods to terminate.",
		},
		"Uncounted": {
			"the Deployment's counts contradict each other", memcached.World{Rollout: rollout(2, 1), Pods: two},
			"2 of 2 servers answer; waiting for the Deployment controller to count the pods.",
		},
		"Complete": {"nothing is missing", memcached.World{Rollout: rolled(2), Pods: two}, "All 2 servers answer."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (memcached.Planner{}).Next(instance(2), c.seen, noon).Message; got != c.want {
				t.Errorf("%s: it says %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// forEachWorld calls visit with every world of up to three pods.
func forEachWorld(visit func(size int32, seen memcached.World)) {
	states := []memcached.Pod{
		{}, answers, {Ready: true, Terminating: true}, {Terminating: true},
		{Problem: lifecycle.PodProblemUnschedulable, Since: noon.Add(-time.Hour)}, {Problem: lifecycle.PodProblemUnschedulable, Since: noon},
		{Problem: lifecycle.PodProblemImagePullBackOff}, {Problem: lifecycle.PodProblemContainerCannotStart}, {Problem: lifecycle.PodProblemCrashLoopBackOff},
	}
	vectors := [][]memcached.Pod{{}}
	for n := 0; n < len(vectors); n++ {
		if len(vectors[n]) == 3 {
			continue
		}
		for _, s := range states {
			vectors = append(vectors, append(append([]memcached.Pod{}, vectors[n]...), s))
		}
	}
	for size := range int32(4) {
		for _, v := range vectors {
			for _, r := range []memcached.Rollout{{}, rolled(size), {Current: true, Total: 3, Updated: 1}} {
				visit(size, memcached.World{Rollout: r, Pods: pods(append([]memcached.Pod{}, v...)...)})
			}
		}
	}
}

func TestDecisionAndConditionsInEverySmallWorld(t *testing.T) {
	worlds := 0
	forEachWorld(func(size int32, seen memcached.World) {
		worlds++
		want := instance(size)
		p := memcached.Planner{}
		d := p.Next(want, seen, noon)
		p.Status(want, seen)
		if !d.IsSet() || d.Reason == "" || d.Message == "" || d.Outcome == lifecycle.OutcomeProceed {
			t.Fatalf("%+v: incomplete decision %s", seen, d)
		}
		if d.Outcome == lifecycle.OutcomeSettled && want.Status.ReadyReplicas != size {
			t.Fatalf("%+v: settled with %d of %d answering", seen, want.Status.ReadyReplicas, size)
		}
		for _, c := range p.Conditions(want, seen, d) {
			if c.Type == "Available" && (c.Status == "True") != (want.Status.ReadyReplicas > 0) || c.Reason == "" {
				t.Fatalf("%+v: %+v is not true", seen, c)
			}
		}
	})
	t.Logf("%d worlds", worlds)
}

// A wait must lead on when it succeeds: the effects of waits never lead back to a world
// with the same wait.
func TestWaitsDoNotCycle(t *testing.T) {
	forEachWorld(func(size int32, seen memcached.World) {
		p := memcached.Planner{}
		for range 5 {
			d := p.Next(instance(size), seen, noon)
			if d.Outcome != lifecycle.OutcomeWait {
				return
			}
			_, seen = p.Effect(instance(size), seen, d.Step)
		}
		t.Fatalf("size %d: still waiting in %+v", size, seen)
	})
}
