package fakeapp

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// Planner implements lifecycle.Planner for rings.
type Planner struct{}

// Steps declares the steps and the wait of the planner.
func Steps() []lifecycle.StepType {
	return []lifecycle.StepType{
		{Name: "Add"}, {Name: "CreatePod"}, {Name: "DeletePod"}, {Name: "Promote"},
		{Name: "Remove", Class: lifecycle.ClassDisruptive},
		{Name: "CaughtUp", Wait: true},
	}
}

// KeepsQuorum promises that a majority of the voters is healthy.
var KeepsQuorum = lifecycle.Gate[*Ring, World]{
	Name:      "KeepsQuorum",
	Violation: func(_ *Ring, w World) int { return w.missing() },
	Message: func(_ *Ring, _, during World, _ lifecycle.Step) string {
		return fmt.Sprintf("only %d of %d voters would be healthy", during.count(healthyVoter), during.count(voter))
	},
}

// Resources returns one ConfigMap, and a second one for odd sizes, so that a change of the
// size prunes an object. A secure ring also has certificates.
func (Planner) Resources(want *Ring, _ World) ([]lifecycle.Object, error) {
	switch want.Spec.Mood {
	case "panic":
		panic("spec.mood is panic")
	case "fail":
		return nil, errors.New("spec.mood: the resources cannot be rendered; remove it")
	}
	objects := []lifecycle.Object{configMap(want.Name)}
	if want.Spec.Size%2 == 1 {
		objects = append(objects, configMap(want.Name+"-odd"))
	}
	if want.Spec.Secure {
		objects = append(objects, certificates(want.Name)...)
	}
	return objects, nil
}

func certificates(ring string) []lifecycle.Object {
	authority := ring + "-ca"
	return []lifecycle.Object{
		lifecycle.Certificate{
			Authority: authority, CommonName: "member", DNSNames: []string{ring}, Server: true,
		}.Secret(ring+"-member", nil),
		lifecycle.Certificate{Authority: authority, CommonName: "client", Client: true}.Secret(ring+"-client", nil),
		lifecycle.Certificate{CommonName: ring}.Secret(authority, nil),
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"ring": name}}
}

// Next lists the rules in order of precedence.
func (Planner) Next(want *Ring, seen World, _ time.Time) lifecycle.Decision {
	size := want.Spec.Size
	if want.DeletionTimestamp != nil {
		size = 0
	}
	return lifecycle.First(
		brokenChange(want),
		suspectChange(want, seen),
		orphanPod(seen),
		memberWithoutPod(seen),
		lostMember(seen),
		startingMember(seen),
		learnerCaughtUp(seen),
		tooManyMembers(size, seen),
		tooFewMembers(size, seen),
	)
}

func step(name, target, reason string, class lifecycle.Class, intent lifecycle.Intent) lifecycle.Step {
	cause := lifecycle.CauseSpecChange
	if intent == lifecycle.IntentRepair {
		cause = lifecycle.CauseFault
	}
	return lifecycle.Step{
		Name: name, Target: target, Class: class, Intent: intent, Cause: cause, Reason: reason,
		Message: fmt.Sprintf("%s: %s %s.", reason, name, target),
	}
}

func brokenChange(want *Ring) lifecycle.Decision {
	if want.Spec.Mood != "broken" {
		return lifecycle.Decision{}
	}
	return lifecycle.Fail("ChangeFailed", "No member can live in this mood. Correct spec.mood.")
}

// suspectChange blocks if a member is inconsistent. The spec may be the cause, or the
// member may have failed by itself.
func suspectChange(want *Ring, seen World) lifecycle.Decision {
	if _, inconsistent := seen.find(func(m Member) bool { return m.Pod == Inconsistent }); !inconsistent && want.Spec.Mood != "mad" {
		return lifecycle.Decision{}
	}
	d := lifecycle.Block("Mad", "No member makes sense. Correct spec.mood if it is the reason.")
	d.Suspect = true
	return d
}

func orphanPod(seen World) lifecycle.Decision {
	if m, ok := seen.find(func(m Member) bool { return !m.Listed }); ok {
		return lifecycle.Proceed(step("DeletePod", m.Name, "OrphanPod", lifecycle.ClassRoutine, lifecycle.IntentRepair))
	}
	return lifecycle.Decision{}
}

func memberWithoutPod(seen World) lifecycle.Decision {
	if m, ok := seen.find(func(m Member) bool { return m.Listed && m.Pod == Absent }); ok {
		return lifecycle.Proceed(step("CreatePod", m.Name, "MemberWithoutPod", lifecycle.ClassRoutine, lifecycle.IntentRepair))
	}
	return lifecycle.Decision{}
}

// startingMember waits, because the quorum may depend on the member that is starting.
func startingMember(seen World) lifecycle.Decision {
	if m, ok := seen.find(func(m Member) bool { return m.Listed && m.Pod == Starting }); ok {
		return lifecycle.WaitFor(step("CaughtUp", m.Name, "MemberStarting", lifecycle.ClassRoutine, lifecycle.IntentChange), time.Time{})
	}
	return lifecycle.Decision{}
}

func learnerCaughtUp(seen World) lifecycle.Decision {
	if m, ok := seen.find(func(m Member) bool { return m.Listed && !m.Voter && m.Pod == Healthy }); ok {
		return lifecycle.Proceed(step("Promote", m.Name, "LearnerCaughtUp", lifecycle.ClassRoutine, lifecycle.IntentChange))
	}
	return lifecycle.Decision{}
}

func lostMember(seen World) lifecycle.Decision {
	if m, ok := seen.find(func(m Member) bool { return m.Listed && m.Pod == Lost }); ok {
		return lifecycle.Proceed(step("Remove", m.Name, "MemberLost", lifecycle.ClassDisruptive, lifecycle.IntentRepair))
	}
	return lifecycle.Decision{}
}

func tooManyMembers(size int, seen World) lifecycle.Decision {
	if n := seen.count(listed); n > size {
		m := seen.Members[len(seen.Members)-1]
		return lifecycle.Proceed(step("Remove", m.Name, "TooManyMembers", lifecycle.ClassDisruptive, lifecycle.IntentChange))
	}
	return lifecycle.Decision{}
}

// tooFewMembers adds one member at a time, also while the promotion of the last one fails.
func tooFewMembers(size int, seen World) lifecycle.Decision {
	_, joining := seen.find(func(m Member) bool { return m.Listed && !m.Voter })
	if seen.count(listed) >= size || joining {
		return lifecycle.Decision{}
	}
	name := fmt.Sprintf("m%06d", seen.Next)
	return lifecycle.Proceed(step("Add", name, "TooFewMembers", lifecycle.ClassRoutine, lifecycle.IntentChange))
}

// Effect returns the world during and after a step or a wait. A removed member is gone at
// once. An added one is, in the worst case, a learner without a pod.
func (Planner) Effect(_ *Ring, seen World, s lifecycle.Step) (during, after World) {
	edit := func(e func(*Member)) World { return seen.change(s.Target, e) }
	switch s.Name {
	case "Add":
		first := seen.count(listed) == 0
		during = edit(func(m *Member) { m.Listed = true })
		after = edit(func(m *Member) { m.Listed, m.Voter, m.Pod = true, first, Starting })
		after.Next++
	case "CreatePod":
		during, after = seen, edit(func(m *Member) { m.Pod = Starting })
	case "DeletePod":
		during, after = seen, edit(func(m *Member) { m.Pod = Absent })
	case "Promote":
		after = edit(func(m *Member) { m.Voter = true })
		during = after
	case "CaughtUp":
		during, after = seen, edit(func(m *Member) { m.Pod = Healthy })
	case "Remove":
		during = edit(func(m *Member) { m.Listed = false })
		after = edit(func(m *Member) { m.Listed, m.Pod = false, Absent })
	}
	return during, after
}

// Status lists the members by name.
func (Planner) Status(want *Ring, seen World) {
	want.Status.Members = nil
	for _, m := range seen.Members {
		if m.Listed {
			want.Status.Members = append(want.Status.Members, m.Name)
		}
	}
}

// Conditions reports whether the ring has a quorum.
func (Planner) Conditions(_ *Ring, seen World, _ lifecycle.Decision) []lifecycle.Condition {
	ok := seen.missing() == 0
	return []lifecycle.Condition{{Type: "Quorum", Status: lifecycle.StatusOf(ok), Reason: "Counted"}}
}

// Retain is one of the [Abilities]: disks can only grow.
func (Planner) Retain(now, earlier *Ring) []string {
	if earlier.Spec.Disk >= now.Spec.Disk {
		return nil
	}
	earlier.Spec.Disk = now.Spec.Disk
	return []string{fmt.Sprintf("spec.disk stays %d, as disks only grow", now.Spec.Disk)}
}

// Unknowns reports the pods in an unknown state.
func (Planner) Unknowns(_ *Ring, seen World) (all []string) {
	for _, m := range seen.Members {
		if m.Pod != Absent && m.Pod != Starting && m.Pod != Healthy && m.Pod != Lost && m.Pod != Inconsistent {
			all = append(all, "The state of "+m.Name+".")
		}
	}
	return all
}

// DependsOn is one of the [Abilities]: a pod reads the ring's first ConfigMap.
func (Planner) DependsOn(want *Ring, s lifecycle.Step, kind string, obj lifecycle.Object) bool {
	return s.Name == "CreatePod" && kind == "ConfigMap" && obj.GetName() == want.Name
}
