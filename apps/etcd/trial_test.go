package etcd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// trying adds a trial of the next template of want.
func trying(want *etcdv1.EtcdCluster, s scene, t etcd.Trial) scene {
	t.Possible = true
	if next, ok := etcd.NextTemplate(want, s.World); ok {
		t.Template = etcd.TemplateOf(next)
	}
	s.Trial = t
	return s
}

// able is a world in which a template can be tried.
func able(s scene) scene {
	s.Trial.Possible = true
	return s
}

func TestTrial(t *testing.T) {
	renewed := func(m *etcd.Member) {
		m.Set.Revision, m.Pod.Revision = etcd.Revision(edited(3)), etcd.Revision(edited(3))
	}
	rotated := able(serving(3))
	for _, m := range rotated.Members {
		rotated = rotated.with(m.Name, func(m *etcd.Member) { m.Set.Revision, m.Pod.Revision = m.Set.Revision+".old", m.Pod.Revision+".old" })
	}
	rotated.Trust = "new"
	memory := edited(3)
	memory.Spec.Storage.Medium = etcdv1.MediumMemory
	pulling := etcd.Trial{Problem: lifecycle.PodProblemImagePullBackOff, Detail: "image \"x\" cannot be pulled"}
	flags := etcd.Trial{Problem: lifecycle.PodProblemCrashLoopBackOff, Detail: "unknown flag"}
	since := func(ago time.Duration) etcd.Trial { return etcd.Trial{Since: noon.Add(-ago)} }
	early, refused := trying(edited(3), serving(3), since(0)), trying(edited(3), serving(3), etcd.Trial{Unknown: "exceeded quota"})
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		seen   scene
		says   string
		words  string
		failed bool
	}{
		"Starts":      {"a changed spec is tried first", edited(3), able(serving(3)), "Proceed StartTrial e-1 (SpecChanged)", "before e-1 restarts", false},
		"Alone":       {"above all by the only member", edited(1), able(serving(1)), "Proceed StartTrial e-0 (SpecChanged)", "", false},
		"Impossible":  {"without nodes nothing is tried", edited(3), serving(3), "Proceed Restart e-1 (SpecChanged)", "", false},
		"Waits":       {"it takes a moment", edited(3), early, "Wait TrialPassed e-1 (SpecChanged)", "", false},
		"Passed":      {"then the first member restarts", edited(3), trying(edited(3), serving(3), etcd.Trial{Passed: true}), "Proceed Restart e-1 (SpecChanged)", "", false},
		"NoImage":     {"or the change has failed", edited(3), trying(edited(3), serving(3), pulling), "Blocked ImagePullBackOff", "cannot be pulled", true},
		"BadFlag":     {"also by etcd's own answer", edited(3), trying(edited(3), serving(3), flags), "Blocked ChangeFailed", "unknown flag", true},
		"Refused":     {"a trial that cannot be holds nothing", edited(3), refused, "Proceed Restart e-1 (SpecChanged)", "exceeded quota", false},
		"Late":        {"nor does one without a result", edited(3), trying(edited(3), serving(3), since(2*time.Minute)), "Proceed Restart e-1 (SpecChanged)", "no result after 2m0s", false},
		"Scheduling":  {"a node may be added", edited(3), trying(edited(3), serving(3), etcd.Trial{Unscheduled: "no node matches", Since: noon.Add(-time.Minute)}), "Wait TrialPassed e-1 (SpecChanged)", "", false},
		"NoNodeYet":   {"new nodes take time", edited(3), trying(edited(3), serving(3), etcd.Trial{Unscheduled: "no node matches", Since: noon.Add(-3 * time.Minute)}), "Blocked Unschedulable", "no node matches", false},
		"NoNode":      {"the member would find none either", edited(3), trying(edited(3), serving(3), etcd.Trial{Unscheduled: "no node matches", Since: noon.Add(-time.Hour)}), "Blocked Unschedulable", "no node matches", true},
		"Another":     {"an earlier trial is deleted first", wanted(3), early, "Proceed DeleteTrial e-trial (TrialOver)", "", false},
		"Corrected":   {"also when the spec was reverted", resized(5), trying(edited(3), serving(3), pulling), "Proceed DeleteTrial e-trial (TrialOver)", "", false},
		"Over":        {"the first member serves with the template", edited(3), trying(edited(3), serving(3).with("e-1", renewed), etcd.Trial{Passed: true}), "Proceed DeleteTrial e-trial (TrialOver)", "", false},
		"Second":      {"the others need no trial", edited(3), able(serving(3).with("e-1", renewed)), "Proceed Restart e-2 (SpecChanged)", "", false},
		"Authorities": {"nor do other authorities", wanted(3), rotated, "Proceed Restart e-1 (AuthoritiesChanged)", "", false},
		"Memory":      {"a replacement serves first", memory, able(serving(3)), "Proceed AddLearner e-3 (SpecChanged)", "", false},
		"Repair":      {"a repair waits for no trial", edited(3), able(serving(3).with("e-1", trouble(lifecycle.PodProblemImagePullBackOff, time.Hour))), "Proceed Restart e-1 (SpecCorrected)", "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(c.want, c.seen.World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != c.says || d.Failed != c.failed || !strings.Contains(d.Message, c.words) {
				t.Errorf("%s:\n got %s (failed: %t)\nwant %s", c.reason, d, d.Failed, c.says)
			}
		})
	}
}

// A plan shows the trial, once for each version on the way.
func TestPreviewOfTrials(t *testing.T) {
	want := strings.Join([]string{
		"StartTrial e-1: 3 of 3 voters serve, 1 member may fail", "(TrialPassed e-1)",
		"Restart e-1: 2 of 3 voters serve, none may fail", "(Serving e-1)", "DeleteTrial e-trial",
		"Restart e-2: 2 of 3 voters serve, none may fail", "(Serving e-2)",
		"MoveLeader e-1: 3 of 3 voters serve, 1 member may fail",
		"Restart e-0: 2 of 3 voters serve, none may fail", "(Serving e-0)", "Settled AsDeclared",
	}, "\n")
	if diff := cmp.Diff(want, steps(edited(3), able(serving(3)).World)); diff != "" {
		t.Error(diff)
	}
}

// From every small world in which a template can be tried, the planner settles as without trials,
// and no trial pod is left.
func TestTrialsSettleInEverySmallWorld(t *testing.T) {
	for _, size := range []int32{1, 3} {
		for _, version := range []string{"3.6.16", "3.7.3"} {
			smallWorlds(letters+byHand, 2, func(code string) {
				want := edited(size)
				want.Spec.Version, want.Status.Bootstrap.Formed, want.Status.Bootstrap.FirstVersion = version, true, "3.5.35"
				seen := able(world(code))
				if healthy, voters := answering(seen.World); healthy < voters/2+1 {
					told(want, seen)
					seen = seen.silent()
				}
				follow(t, code+" with trials", want, seen.World)
			})
		}
	}
}

// In every small world, no member that serves restarts with a template whose trial has failed.
func TestFailedTrialTakesNoMemberInEverySmallWorld(t *testing.T) {
	kept := 0
	for _, size := range []int32{1, 3} {
		smallWorlds(letters+byHand+inTheWay, atMost(3, 2), func(code string) {
			want := edited(size)
			want.Status.Bootstrap.Formed = true
			if followFailing(t, fmt.Sprintf("%s to %d", code, size), want, able(world(code)).World) {
				kept++
			}
		})
	}
	if kept < atMost(500, 20) {
		t.Errorf("a trial fails in %d worlds only", kept)
	}
}

// followFailing follows the planner while every trial fails, and reports whether one did.
func followFailing(t *testing.T, code string, want *etcdv1.EtcdCluster, seen etcd.World) bool {
	t.Helper()
	p := etcd.Planner{}
	var story []string
	for range 60 {
		p.Status(want, seen)
		d := p.Next(want, seen, noon)
		story = append(story, strings.SplitN(d.String(), ":", 2)[0])
		if d.Outcome != lifecycle.OutcomeProceed && d.Outcome != lifecycle.OutcomeWait {
			return d.Failed && d.Reason == string(lifecycle.PodProblemImagePullBackOff)
		}
		serves := slices.ContainsFunc(seen.Members, func(m etcd.Member) bool {
			return m.Name == d.Step.Target && m.Role == etcd.Voter && m.Health == etcd.Healthy && m.Pod.Ready
		})
		works := slices.ContainsFunc(seen.Members, func(m etcd.Member) bool { return m.Pod.Revision == etcd.Revision(want) && m.Pod.Ready })
		if d.Step.Name == etcd.Restart && serves && !works {
			t.Fatalf("%s: a member is taken\n%s", code, strings.Join(story, "\n"))
		}
		if _, seen = p.Effect(want, seen, d.Step); d.Step.Name == etcd.TrialPassed {
			seen.Trial.Passed, seen.Trial.Problem = false, lifecycle.PodProblemImagePullBackOff
		}
	}
	return false
}

// The trial pod is no member: no Service, disruption budget or policy of the cluster selects it.
func TestTrialPod(t *testing.T) {
	want := edited(3)
	want.Spec.Pod.Args = []string{"--max-request-bytes=1"}
	want.Spec.Pod.Labels = map[string]string{"team": "a"}
	s, _ := etcd.NextTemplate(want, serving(3).World)
	pod, err := etcd.TrialPod(want, serving(3).World, s)
	if err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	if pod.Name != "e-trial" || pod.Annotations[etcd.AnnotationTried] != s.Target || pod.Spec.ServiceAccountName != "none" || len(pod.Spec.Volumes)+len(c.VolumeMounts) > 0 ||
		!slices.Contains(c.Args, "--max-request-bytes=1") || c.Args[len(c.Args)-1] != "--version" || pod.Annotations[etcd.AnnotationTemplate] != etcd.TemplateOf(s) {
		t.Errorf("the pod is %+v", pod)
	}
	member, err := etcd.StatefulSet(want, serving(3).World, s)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range member.Spec.Template.Labels {
		if pod.Labels[key] == value && key != lifecycle.LabelApp && key != lifecycle.LabelInstance {
			t.Errorf("it has the label %s=%s of a member", key, value)
		}
	}
}

// A changed node selector or node affinity may exclude the member's node.
func TestTrialPodIsScheduledBySelectors(t *testing.T) {
	selector, affinity := edited(3), edited(3)
	selector.Spec.Pod.NodeSelector = map[string]string{"disk": "other"}
	affinity.Spec.Pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	for name, want := range map[string]*etcdv1.EtcdCluster{"selector": selector, "affinity": affinity} {
		s, _ := etcd.NextTemplate(want, serving(3).World)
		pod, err := etcd.TrialPod(want, serving(3).World, s)
		if err != nil {
			t.Fatal(err)
		}
		if chosen := pod.Spec.NodeSelector != nil || pod.Spec.Affinity.NodeAffinity != nil && pod.Spec.Affinity.PodAntiAffinity == nil; pod.Spec.NodeName != "" || !chosen {
			t.Errorf("%s: the pod is on %q, with %v and %v", name, pod.Spec.NodeName, pod.Spec.NodeSelector, pod.Spec.Affinity)
		}
	}
}
