package podset

import (
	"cmp"
	"slices"
	"time"
)

const (
	// minBackoff is the backoff before the replacement of a pod that finished early and
	// replaced another such pod. It doubles each time, up to maxBackoff.
	minBackoff = 5 * time.Second
	maxBackoff = 5 * time.Minute
	// longRun is the run time after which the end of a pod is no sign of a fault in its
	// template.
	longRun = 10 * time.Minute
)

// replaceAt returns when a finished pod is replaced. The first one is replaced at once.
func (p *Pod) replaceAt() time.Time {
	if p.Attempt == 0 || p.ranLong() {
		return p.FinishedAt
	}
	pause := maxBackoff
	if doublings := p.Attempt - 1; doublings < 6 {
		pause = minBackoff << doublings
	}
	return p.FinishedAt.Add(pause)
}

func (p *Pod) ranLong() bool { return p.FinishedAt.Sub(p.StartedAt) >= longRun }

// nextAttempt returns the attempt number of the pod's replacement.
func (p *Pod) nextAttempt() int {
	if p.ranLong() {
		return 1
	}
	return p.Attempt + 1
}

// inBackoff selects the finished pods that are in backoff and keep their place.
func inBackoff(now time.Time) func(*Pod) bool {
	return func(p *Pod) bool { return p.finished() && now.Before(p.replaceAt()) }
}

// Finished returns n finished pods, the earliest to replace first.
func Finished(seen World, n int) []Pod {
	all := seen.filter((*Pod).finished)
	slices.SortFunc(all, func(a, b Pod) int {
		return cmp.Or(a.replaceAt().Compare(b.replaceAt()), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(max(0, n), len(all))]
}

// Replacements returns n pods that replace the finished ones.
func Replacements(set string, seen World, finished []Pod, n int) []NewPod {
	pods := NewPods(set, seen, n)
	for i := range pods {
		if i < len(finished) {
			pods[i].Attempt = finished[i].nextAttempt()
		}
	}
	return pods
}
