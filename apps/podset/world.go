package podset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
)

// World is one set as observed.
type World struct {
	// Pods are sorted by name: those that the set controls, and those that it could
	// adopt.
	Pods []Pod
	// Refusal is the API server's answer to a dry run of a pod of the present template, in
	// its own words. It is empty if it accepts such pods, or if no pod has another template.
	Refusal string
	// Least is how many pods are to be available while a step replaces some; zero
	// outside of such a step.
	Least int
}

// Phase is how far a pod has come, in the order in which pods are worth keeping.
type Phase int

// The phases of a pod.
const (
	Pending Phase = iota
	Unknown
	Running
	// Ended says that it succeeded or failed, and will not run again.
	Ended
)

// Pod is one pod.
type Pod struct {
	Name string
	UID  types.UID
	// Owned says that the set controls it; otherwise nobody does.
	Owned bool
	// Matches says that it bears the set's labels.
	Matches bool
	// Leaving says that it is being deleted.
	Leaving bool
	Phase   Phase
	Ready   bool
	// ReadySince is when it became ready; zero if it is not.
	ReadySince time.Time
	// Node is where it runs; empty if no node was found yet.
	Node string
	// Cost is what its deletion costs, by the annotation of Kubernetes.
	Cost int32
	// Restarts is that of its container that restarted most often.
	Restarts int32
	Created  time.Time
	// Template is the fingerprint of the template that it was made from; empty if
	// that is not known.
	Template string
	// Attempt counts the pods that ended soon after their start before this one.
	Attempt int
	// Began and Gone are when it started and, once it has ended, when that was.
	Began, Gone time.Time
	// Trouble is what hinders it.
	Trouble lifecycle.PodProblem
	// Detail is Kubernetes' own words about the trouble.
	Detail string
	// Since is when the trouble began.
	Since time.Time
}

// Active reports whether the pod counts: it is the set's, and there to stay.
func (p *Pod) Active() bool { return p.ours() && p.Phase != Ended }

// ours reports whether the pod is the set's and stays as far as is known.
func (p *Pod) ours() bool { return p.Owned && p.Matches && !p.Leaving }

// orphan reports whether the pod may be adopted.
func (p *Pod) orphan() bool { return !p.Owned && p.Matches && !p.Leaving && p.Phase != Ended }

// stray reports whether the pod is to be let go.
func (p *Pod) stray() bool { return p.Owned && !p.Matches && !p.Leaving }

// Orphans are the pods that are to be adopted.
func (w World) Orphans() []Pod { return w.those((*Pod).orphan) }

// Strays are the pods that are to be let go.
func (w World) Strays() []Pod { return w.those((*Pod).stray) }

// Actives are the pods that count.
func (w World) Actives() []Pod { return w.those((*Pod).Active) }

// Outdated are the pods of another template than the present one. Of a pod that does
// not know its template nothing is held against it.
func (w World) Outdated(template string) []Pod { return w.those(otherThan(template)) }

func otherThan(template string) func(*Pod) bool {
	return func(p *Pod) bool { return p.Active() && p.Template != "" && p.Template != template }
}

func (p *Pod) available() bool { return p.Ready && p.Active() }
func (p *Pod) ended() bool     { return p.Phase == Ended && p.ours() }

func (w World) active() int    { return w.count((*Pod).Active) }
func (w World) available() int { return w.count((*Pod).available) }

// count does not copy: while hundreds of pods start, each of them makes a turn.
func (w World) count(are func(*Pod) bool) int {
	n := 0
	for i := range w.Pods {
		if are(&w.Pods[i]) {
			n++
		}
	}
	return n
}

func (w World) those(are func(*Pod) bool) []Pod {
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

// inTrouble returns the first pod with the trouble.
func (w World) inTrouble(t lifecycle.PodProblem) (Pod, bool) {
	for i := range w.Pods {
		if p := &w.Pods[i]; p.Trouble == t && p.Active() {
			return *p, true
		}
	}
	return Pod{}, false
}
