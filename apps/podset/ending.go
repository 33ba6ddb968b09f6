package podset

import (
	"cmp"
	"slices"
	"time"
)

const (
	// firstPause is how long a pod waits to be replaced that ended soon after its
	// start and replaced one that did; the pause doubles each time, up to lastPause.
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
	// longLife is after how long the end of a pod is no sign of a fault in its
	// template.
	longLife = 10 * time.Minute
)

// again is when an ended pod is replaced. The first of a row is replaced at once.
func (p *Pod) again() time.Time {
	if p.Attempt == 0 || p.livedLong() {
		return p.Gone
	}
	pause := lastPause
	if doublings := p.Attempt - 1; doublings < 6 {
		pause = firstPause << doublings
	}
	return p.Gone.Add(pause)
}

func (p *Pod) livedLong() bool { return p.Gone.Sub(p.Began) >= longLife }

// next is the attempt that the pod's replacement is.
func (p *Pod) next() int {
	if p.livedLong() {
		return 1
	}
	return p.Attempt + 1
}

// resting tells the ended pods that keep their place, as it is too early to replace
// them.
func resting(now time.Time) func(*Pod) bool {
	return func(p *Pod) bool { return p.ended() && now.Before(p.again()) }
}

// Finished are n ended pods, those that could be replaced earliest.
func Finished(seen World, n int) []Pod {
	ended := seen.those((*Pod).ended)
	slices.SortFunc(ended, func(a, b Pod) int {
		return cmp.Or(a.again().Compare(b.again()), cmp.Compare(a.Name, b.Name))
	})
	return ended[:min(max(0, n), len(ended))]
}

// Replacements are n pods that take the places of departed ones.
func Replacements(set string, seen World, departed []Pod, n int) []NewPod {
	heirs := NewPods(set, seen, n)
	for i := range heirs {
		if i < len(departed) {
			heirs[i].Attempt = departed[i].next()
		}
	}
	return heirs
}
