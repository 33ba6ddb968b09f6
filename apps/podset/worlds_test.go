package podset_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// set is a set of so many pods.
func set(replicas int32) *appv1.PodSet {
	s := &appv1.PodSet{}
	s.Name, s.Namespace, s.UID, s.Spec.Replicas = "web", "ns", "set", replicas
	return s
}

// kinds of pods, each of which the rules treat differently.
const (
	ready    = 'r'
	starting = 's'
	old      = 'o' // of an earlier template, ready
	broken   = 'b' // of an earlier template, not ready
	leaving  = 'l'
	ended    = 'e'
	again    = 'a' // ended, and not for the first time
	orphan   = 'n'
	stray    = 't'
)

// world has one pod for each letter.
func world(letters string) podset.World {
	var w podset.World
	for i, kind := range letters {
		p := podset.Pod{
			Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), Owned: true, Matches: true,
			Template: podset.Fingerprint(set(0)), Phase: podset.Running, Ready: true,
		}
		change(&p, kind)
		w.Pods = append(w.Pods, p)
	}
	return w
}

func change(p *podset.Pod, kind rune) {
	switch kind {
	case starting:
		p.Phase, p.Ready = podset.Pending, false
	case old:
		p.Template = "earlier"
	case broken:
		p.Template, p.Ready = "earlier", false
	case leaving:
		p.Leaving = true
	case ended, again:
		p.Phase, p.Ready, p.Began, p.Gone = podset.Ended, false, now.Add(-time.Second), now
		if kind == again {
			p.Attempt = 1
		}
	case orphan:
		p.Owned, p.Template = false, ""
	case stray:
		p.Matches = false
	}
}
