package podset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// World is the observed state of one set.
type World struct {
	// Pods are sorted by name. They are the pods that the set controls, and those that it
	// could adopt.
	Pods []Pod
	// Template is the API server's answer to a dry run of a pod of the present template. The
	// driver asks if a pod has another template.
	Template lifecycle.TemplateVerdict
}

// Phase is the phase of a pod, in the order in which pods are worth keeping.
type Phase int

// The phases of a pod.
const (
	PhasePending Phase = iota
	PhaseUnknown
	PhaseRunning
	// PhaseFinished means that the pod succeeded or failed, and will not run again.
	PhaseFinished
)

// Pod is one pod.
type Pod struct {
	Name string
	UID  types.UID
	// Owned reports whether the set controls the pod. Otherwise the pod has no controller.
	Owned bool
	// Matches reports whether the pod has the set's labels.
	Matches bool
	// Terminating reports whether the pod is being deleted.
	Terminating bool
	Phase       Phase
	Ready       bool
	// ReadySince is the time at which the pod became ready; zero if it is not ready.
	ReadySince time.Time
	// Node is the pod's node; empty if the pod is not scheduled.
	Node string
	// Cost is the value of Kubernetes' pod-deletion-cost annotation.
	Cost int32
	// Restarts is the restart count of the container with the most restarts.
	Restarts int32
	Created  time.Time
	// Template is the fingerprint of the pod's template; empty if unknown.
	Template string
	// Attempt counts the predecessors that finished soon after their start.
	Attempt int
	// StartedAt and FinishedAt are the start time and, of a finished pod, the end time.
	StartedAt, FinishedAt time.Time
	// Problem is the reason why the pod is not ready.
	Problem lifecycle.PodProblem
	// Detail is Kubernetes' message about the problem.
	Detail string
	// Since is the time at which the problem began.
	Since time.Time
}

// Active reports whether the pod counts: the set owns it, and it is neither terminating
// nor finished.
func (p *Pod) Active() bool { return p.owned() && p.Phase != PhaseFinished }

// owned reports whether the set owns the pod, its labels match, and it is not being
// deleted.
func (p *Pod) owned() bool { return p.Owned && p.Matches && !p.Terminating }

// orphan reports whether the set can adopt the pod.
func (p *Pod) orphan() bool {
	return !p.Owned && p.Matches && !p.Terminating && p.Phase != PhaseFinished
}

// stray reports whether the set must release the pod.
func (p *Pod) stray() bool { return p.Owned && !p.Matches && !p.Terminating }

// Orphans returns the pods to adopt.
func (w World) Orphans() []Pod { return w.filter((*Pod).orphan) }

// Strays returns the pods to release.
func (w World) Strays() []Pod { return w.filter((*Pod).stray) }

// Actives returns the pods that count.
func (w World) Actives() []Pod { return w.filter((*Pod).Active) }

// Outdated returns the pods of another template than the present one. A pod whose template
// is unknown is not outdated.
func (w World) Outdated(template string) []Pod { return w.filter(otherThan(template)) }

func otherThan(template string) func(*Pod) bool {
	return func(p *Pod) bool { return p.Active() && p.Template != "" && p.Template != template }
}

func (p *Pod) available() bool { return p.Ready && p.Active() }
func (p *Pod) finished() bool  { return p.Phase == PhaseFinished && p.owned() }

func (w World) active() int    { return w.count((*Pod).Active) }
func (w World) available() int { return w.count((*Pod).available) }

// count does not copy, because each of hundreds of starting pods triggers a reconcile.
func (w World) count(are func(*Pod) bool) int {
	n := 0
	for i := range w.Pods {
		if are(&w.Pods[i]) {
			n++
		}
	}
	return n
}

func (w World) filter(are func(*Pod) bool) []Pod {
	n := w.count(are)
	if n == 0 {
		return nil
	}
	some := make([]Pod, 0, n)
	for i := range w.Pods {
		if are(&w.Pods[i]) {
			some = append(some, w.Pods[i])
		}
	}
	return some
}

// withProblem returns the first pod with the problem.
func (w World) withProblem(t lifecycle.PodProblem) (Pod, bool) {
	for i := range w.Pods {
		if p := &w.Pods[i]; p.Problem == t && p.Active() {
			return *p, true
		}
	}
	return Pod{}, false
}
