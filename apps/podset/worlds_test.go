package podset_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// set returns a set with that number of replicas.
func set(replicas int32) *appv1.PodSet {
	s := &appv1.PodSet{}
	s.Name, s.Namespace, s.UID, s.Spec.Replicas = "web", "ns", "set", replicas
	return s
}

// Kinds of pods that the planner treats differently.
const (
	ready       = 'r'
	starting    = 's'
	old         = 'o' // of an earlier template, ready
	broken      = 'b' // of an earlier template, not ready
	terminating = 'l'
	ended       = 'e'
	again       = 'a' // finished, and not for the first time
	orphan      = 'n'
	stray       = 't'
)

// world returns a world with one pod per letter.
func world(letters string) podset.World {
	var w podset.World
	for i, kind := range letters {
		p := podset.Pod{
			Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), Owned: true, Matches: true,
			Template: podset.Fingerprint(set(0)), Phase: podset.PhaseRunning, Ready: true,
		}
		change(&p, kind)
		w.Pods = append(w.Pods, p)
	}
	return w
}

func change(p *podset.Pod, kind rune) {
	switch kind {
	case starting:
		p.Phase, p.Ready = podset.PhasePending, false
	case old:
		p.Template = "earlier"
	case broken:
		p.Template, p.Ready = "earlier", false
	case terminating:
		p.Terminating = true
	case ended, again:
		p.Phase, p.Ready, p.StartedAt, p.FinishedAt = podset.PhaseFinished, false, now.Add(-time.Second), now
		if kind == again {
			p.Attempt = 1
		}
	case orphan:
		p.Owned, p.Template = false, ""
	case stray:
		p.Matches = false
	}
}
