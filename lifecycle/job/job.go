// Package job is what a Planner has to know of a Job: long work that a step starts and that no
// worker waits for. It has what is observed of a Job, the rule that starts it and waits for it,
// how that wait ends, and the Job itself. It is pure; package kube/observe reads one from a
// cluster.
//
// A Job has a name that follows from its inputs, see [Name]. So the same work is never done
// twice by accident, and other inputs are another Job.
package job

import (
	"cmp"
	"fmt"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// What [State.Run] waits for.
const (
	// Finished is the end of the Job.
	Finished = "JobFinished"
	// Gone is the end of its deletion.
	Gone = "JobGone"
)

// Steps declares what [State.Run] waits for. The step that starts the Job is the application's own.
func Steps() []lifecycle.StepType {
	return []lifecycle.StepType{{Name: Finished, Wait: true}, {Name: Gone, Wait: true}}
}

// Phase is how far a Job is.
type Phase string

const (
	// PhaseAbsent means that there is no Job.
	PhaseAbsent Phase = ""
	// PhasePending means that no pod of the Job runs. Reason says why, if that is known.
	PhasePending Phase = "Pending"
	// PhaseRunning means that a pod of the Job runs.
	PhaseRunning Phase = "Running"
	// PhaseSucceeded means that the work is done.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed means that Kubernetes gave up: after the last retry, or at the deadline.
	PhaseFailed Phase = "Failed"
)

// Ended reports whether the Job has ended for good.
func (p Phase) Ended() bool { return p == PhaseSucceeded || p == PhaseFailed }

// Reasons of a phase, besides the PodProblems of a pending Job and the other reasons of
// Kubernetes for a failed one.
const (
	// ReasonQuotaExceeded means that a ResourceQuota refuses the pod of a pending Job.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPodsRefused means that the API server refuses the pod of a pending Job, e.g. because
	// of a LimitRange or an admission policy.
	ReasonPodsRefused = "PodsRefused"
	// ReasonSuspended means that a user, or a queue such as Kueue, holds the Job.
	ReasonSuspended = "Suspended"
	// ReasonDeadlineExceeded means that the Job failed because its deadline passed.
	ReasonDeadlineExceeded = "DeadlineExceeded"
)

const (
	// podInterval is how soon a Job without a pod is observed again: nothing reports that the API
	// server refuses its pod.
	podInterval = 5 * time.Second
	// overdueAfter is the time after the deadline in which Kubernetes has to fail the Job.
	overdueAfter = time.Minute
)

// State is what is observed of a Job and its pods. The zero State is that of a Job that does not
// exist.
type State struct {
	// Name of the Job.
	Name  string
	Phase Phase
	// Reason is why the Job failed or is pending, and Detail is the same as a part of a sentence.
	Reason, Detail string
	// LastWords is the last line that the last pod left at its end, which may be its last log.
	LastWords string
	// HasPod reports whether the Job has a pod that has not ended.
	HasPod bool
	// Deleting reports that the Job is being deleted. Its result does not count.
	Deleting bool
	// Since is when the Job was created or resumed.
	Since time.Time
	// Deadline is when Kubernetes fails the Job; zero if it has no deadline.
	Deadline time.Time
}

// Started returns the state of a Job that was just created: the world after the step that starts
// it.
func Started(name string) State { return State{Name: name, Phase: PhasePending} }

// Run is the rule for the work that the step starts, whose target is the name of the Job. It
// takes the step if there is no Job, and waits while there is one. It blocks if the Job failed,
// or cannot begin until a person acts; remedy says what that person can correct, as a sentence.
// It is not set once the Job succeeded. A Job of another name does not count.
//
// A Job that failed stays failed. It runs again under another name, or when it was deleted.
func (s State) Run(start lifecycle.Step, remedy string, now time.Time) lifecycle.Decision {
	name := start.Target
	if s.Name != name {
		s = State{}
	}
	switch {
	case s.Deleting:
		return wait(Gone, name, "JobDeleting", fmt.Sprintf("The Job %s is being deleted.", name), s.Since)
	case s.Phase == PhaseSucceeded:
		return lifecycle.Decision{}
	case s.Phase == PhaseAbsent:
		return lifecycle.Proceed(start)
	case s.Phase == PhaseFailed:
		return lifecycle.Block("JobFailed", fmt.Sprintf("The Job %s failed: %s. %s Delete the Job to run it again.", name, s.why(), remedy))
	case s.needsPerson():
		return lifecycle.Block(s.Reason, fmt.Sprintf("The Job %s cannot start a pod: %s. %s", name, s.Detail, remedy))
	case !s.Deadline.IsZero() && !now.Before(s.Deadline.Add(overdueAfter)):
		return lifecycle.Block("JobOverdue", fmt.Sprintf(
			"The Job %s has passed its deadline, and Kubernetes has not ended it. See whether the kube-controller-manager runs.", name))
	}
	return s.waiting(name)
}

// needsPerson reports whether the Job is pending for a reason that does not pass by itself. A
// cluster may get another node, and a queue may let the Job go on.
func (s State) needsPerson() bool {
	switch s.Reason {
	case ReasonQuotaExceeded, ReasonPodsRefused, string(lifecycle.PodProblemImagePullBackOff), string(lifecycle.PodProblemContainerCannotStart):
		return s.Phase == PhasePending
	}
	return false
}

func (s State) waiting(name string) lifecycle.Decision {
	reason, message := "JobRunning", fmt.Sprintf("The Job %s is running", name)
	if s.Phase == PhasePending {
		reason, message = "JobPending", fmt.Sprintf("The Job %s has not begun", name)
	}
	if s.Detail != "" {
		message += ": " + s.Detail
	}
	if s.LastWords != "" {
		message += fmt.Sprintf("; a pod ended with %q", s.LastWords)
	}
	d := wait(Finished, name, reason, message+".", s.Since)
	if !s.HasPod {
		d = d.Heartbeat(podInterval)
	}
	if !s.Deadline.IsZero() {
		d = d.Until(s.Deadline.Add(overdueAfter))
	}
	return d
}

func wait(name, target, reason, message string, since time.Time) lifecycle.Decision {
	return lifecycle.WaitFor(lifecycle.Step{Name: name, Target: target, Reason: reason, Message: message}, since)
}

// why is the reason of the failure, with the last words of the last pod.
func (s State) why() string {
	why := cmp.Or(s.Detail, s.Reason, "Kubernetes gives no reason")
	if s.LastWords == "" {
		return why
	}
	return fmt.Sprintf("%s; a pod ended with %q", why, s.LastWords)
}

// After returns the state when a wait of Run has ended well, and the same state for any other
// step.
func (s State) After(step lifecycle.Step) State {
	switch {
	case step.Target != s.Name || s.Phase == PhaseAbsent:
		return s
	case step.Name == Finished:
		return State{Name: s.Name, Phase: PhaseSucceeded, HasPod: true, Since: s.Since}
	case step.Name == Gone:
		return State{}
	}
	return s
}
