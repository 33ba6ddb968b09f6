package podset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// smallWorlds calls do for every world of up to most pods.
func smallWorlds(most int, do func(letters string)) {
	var grow func(string)
	grow = func(letters string) {
		do(letters)
		if len(letters) == most {
			return
		}
		for _, kind := range "rsobleant" {
			grow(letters + string(kind))
		}
	}
	grow("")
}

// From every small world the planner settles. On the way no step creates an excess pod,
// and none makes more pods unavailable than allowed.
func TestSmallWorlds(t *testing.T) {
	worlds := 0
	smallWorlds(4, func(letters string) {
		for replicas := range int32(5) {
			worlds++
			if err := converges(replicas, letters); err != nil {
				t.Fatalf("%d of %q: %v", replicas, letters, err)
			}
		}
	})
	t.Logf("%d worlds", worlds)
}

func converges(replicas int32, letters string) error {
	want, seen, decisions := set(replicas), world(letters), []string{}
	for range 40 {
		d := podset.Planner{}.Next(want, seen, now)
		decisions = append(decisions, d.String())
		if d.Outcome == lifecycle.OutcomeSettled {
			return checkSettled(replicas, seen)
		}
		if d.Outcome == lifecycle.OutcomeBlocked {
			return fmt.Errorf("blocked: %s", d)
		}
		during, after := podset.Planner{}.Effect(want, seen, d.Step)
		if d.Outcome == lifecycle.OutcomeProceed {
			if err := checkStep(want, seen, during, d.Step); err != nil {
				return fmt.Errorf("%w\n%s", err, strings.Join(decisions, "\n"))
			}
		}
		seen = after
	}
	return fmt.Errorf("not settled:\n%s", strings.Join(decisions, "\n"))
}

func checkStep(want *appv1.PodSet, seen, during podset.World, s lifecycle.Step) error {
	replicas, was, is := want.Spec.Replicas, len(seen.Actives()), len(during.Actives())
	if is > was && is > int(replicas) && s.Name != podset.Adopt {
		return fmt.Errorf("%s gives %d pods", s, is)
	}
	if is < was && is < int(replicas) && s.Name != podset.ReplaceOutdated {
		return fmt.Errorf("%s leaves %d", s, is)
	}
	if held := lifecycle.Judge(podset.Gates(), want, seen, during, s); len(held) > 0 {
		return fmt.Errorf("%s is held: %v", s, held)
	}
	names := map[string]bool{}
	for _, p := range during.Pods {
		if names[p.Name] {
			return fmt.Errorf("%s uses the name %s twice", s, p.Name)
		}
		names[p.Name] = true
	}
	return nil
}

func checkSettled(replicas int32, seen podset.World) error {
	active := seen.Actives()
	good := func(p podset.Pod) bool { return p.Ready && p.Template == podset.Fingerprint(set(replicas)) }
	if len(active) != int(replicas) || slices.ContainsFunc(active, func(p podset.Pod) bool { return !good(p) }) {
		return fmt.Errorf("settled with %v", active)
	}
	return nil
}

// A creation that is decided twice creates each pod once. If another operator has created
// some of the new pods already, the names stay the same.
func TestNewPodsHaveStableNames(t *testing.T) {
	seen := world("rlrs")
	pods := podset.NewPods("web", seen, 3)
	if got, want := fmt.Sprint(pods), "[{web-4 0} {web-5 0} {web-6 0}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	seen.Pods = slices.Delete(seen.Pods, 1, 2)
	if got, want := fmt.Sprint(podset.NewPods("web", seen, 2)), "[{web-1 0} {web-4 0}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNumbered(t *testing.T) {
	for name, want := range map[string]bool{
		"web-0": true, "web-17": true, "web-": false, "web-01": false, "web-x": false, "web": false, "web-2-0": false, "other-1": false, "web--1": false,
	} {
		if got := podset.Numbered("web", name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestPodsToDelete(t *testing.T) {
	early, late := now.Add(-time.Hour), now
	pod := func(name string, edit func(*podset.Pod)) podset.Pod {
		p := podset.Pod{Name: name, Node: name, Phase: podset.PhaseRunning, Ready: true, ReadySince: early, Created: early}
		edit(&p)
		return p
	}
	// The pods are in the order of their deletion.
	want := []podset.Pod{
		pod("unassigned", func(p *podset.Pod) { p.Node, p.Phase, p.Ready = "", podset.PhasePending, false }),
		pod("pending", func(p *podset.Pod) { p.Phase, p.Ready = podset.PhasePending, false }),
		pod("unknown", func(p *podset.Pod) { p.Phase = podset.PhaseUnknown }),
		pod("unready", func(p *podset.Pod) { p.Ready, p.ReadySince = false, time.Time{} }),
		pod("cheap", func(p *podset.Pod) { p.Cost = -5 }),
		pod("crowded-a", func(p *podset.Pod) { p.Node, p.ReadySince = "n", late }),
		pod("crowded-b", func(p *podset.Pod) { p.Node = "n" }),
		pod("fresh", func(p *podset.Pod) { p.ReadySince = late }),
		pod("restarted", func(p *podset.Pod) { p.Restarts = 3 }),
		pod("young", func(p *podset.Pod) { p.Created = late }),
		pod("z-old", func(*podset.Pod) {}),
		pod("dear", func(p *podset.Pod) { p.Cost = 9 }),
	}
	mixed := []podset.Pod{want[5], want[11], want[0], want[9], want[3], want[10], want[7], want[1], want[8], want[2], want[6], want[4]}
	for n := range len(want) + 1 {
		got := podset.PodsToDelete(mixed, n)
		for i := range n {
			if len(got) != n || got[i].Name != want[i].Name {
				t.Fatalf("pod %d is %s, want %s", i, got[i].Name, want[i].Name)
			}
		}
	}
}
