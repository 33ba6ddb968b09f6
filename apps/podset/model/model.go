// Package model is an in-memory namespace with pods, for the simulator and for tests. The
// contract suite checks it against the behavior of the driver on a real API server.
package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// pod is a pod with the state that the driver does not observe.
type pod struct {
	podset.Pod
	// watched reports whether it has the application's label, without which no cache shows
	// it.
	watched bool
	// foreign reports whether another controller owns it.
	foreign bool
}

// Model is a namespace with one set. It implements sim.Model.
type Model struct {
	want    *appv1.PodSet
	pods    []*pod
	created int
	now     time.Time
	quota   int
	err     error
}

// New returns an empty namespace without a quota.
func New() *Model { return &Model{quota: -1, want: &appv1.PodSet{}} }

// Observe implements sim.Model.
func (m *Model) Observe(time.Time) podset.World {
	var seen podset.World
	for _, p := range m.pods {
		if m.shown(p) {
			seen.Pods = append(seen.Pods, p.Pod)
		}
	}
	slices.SortFunc(seen.Pods, func(a, b podset.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return seen
}

// shown reports whether the driver finds the pod.
func (m *Model) shown(p *pod) bool {
	switch {
	case p.foreign:
		return false
	case p.Owned && !p.watched:
		return slices.Contains(m.want.Status.PodNames, p.Name) && !podset.Numbered(m.want.Name, p.Name)
	}
	return p.Owned || p.Matches
}

// Provide implements sim.Model. A set has no resources.
func (m *Model) Provide(want *appv1.PodSet, _ []lifecycle.Object, _ *sim.Effects) error {
	m.want = want
	return nil
}

// Safe implements sim.Truthful.
func (m *Model) Safe() error { return m.err }

// Act implements sim.Model.
func (m *Model) Act(want *appv1.PodSet, seen podset.World, step lifecycle.Step, fx *sim.Effects) error {
	args, err := lifecycle.ArgsOf[podset.Args](step)
	if err != nil {
		return err
	}
	if step.Name != podset.Release && step.Name != podset.Adopt {
		if err := m.checkUnchanged(seen); err != nil {
			return err
		}
	}
	switch n := args.Pods; step.Name {
	case podset.Release:
		return m.each(fx, "release", seen.Strays(), func(p *pod) { p.Owned = false })
	case podset.Adopt:
		return m.adopt(want, seen, fx)
	case podset.DeletePods:
		return m.each(fx, "delete", podset.PodsToDelete(seen.Actives(), n), m.remove)
	case podset.ReplaceOutdated:
		return m.each(fx, "delete", podset.PodsToDelete(seen.Outdated(podset.Fingerprint(want)), n), m.remove)
	case podset.CreatePods:
		return m.createPods(want, seen, podset.NewPods(want.Name, seen, n), fx)
	case podset.ReplaceFinished:
		finished := podset.Finished(seen, args.Finished)
		if err := m.each(fx, "delete", finished, m.remove); err != nil {
			return err
		}
		return m.createPods(want, seen, podset.Replacements(want.Name, seen, finished, n), fx)
	}
	return fmt.Errorf("podset has no step %s", step)
}

// checkUnchanged is the driver's check before it creates or deletes pods.
func (m *Model) checkUnchanged(seen podset.World) error {
	known, stays := map[types.UID]bool{}, map[types.UID]bool{}
	for _, p := range seen.Pods {
		known[p.UID] = true
	}
	for _, p := range m.pods {
		if p.foreign || !p.Matches || p.Terminating {
			continue
		}
		if stays[p.UID] = true; !known[p.UID] {
			return &lifecycle.Deferred{Reason: "pod " + p.Name + " is not in the cache yet"}
		}
	}
	for _, p := range seen.Actives() {
		if !stays[p.UID] {
			return &lifecycle.Deferred{Reason: "pod " + p.Name + " is gone"}
		}
	}
	return nil
}

// each applies the change to those of the pods that still exist.
func (m *Model) each(fx *sim.Effects, verb string, pods []podset.Pod, do func(*pod)) error {
	for _, p := range pods {
		err := fx.Do(verb+" pod "+p.Name, func() error {
			if i := slices.IndexFunc(m.pods, func(q *pod) bool { return q.UID == p.UID }); i >= 0 {
				do(m.pods[i])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) adopt(want *appv1.PodSet, seen podset.World, fx *sim.Effects) error {
	return m.each(fx, "adopt", seen.Orphans(), func(p *pod) {
		if !p.foreign {
			p.Owned, p.Template = true, podset.Fingerprint(want)
		}
	})
}

// remove deletes the pod. A finished pod is gone at once.
func (m *Model) remove(p *pod) {
	if p.Terminating = true; p.Phase == podset.PhaseFinished {
		m.pods = slices.DeleteFunc(m.pods, func(q *pod) bool { return q == p })
	}
}

func (m *Model) createPods(want *appv1.PodSet, seen podset.World, pods []podset.NewPod, fx *sim.Effects) error {
	left := len(pods)
	for name := range podset.Free(want.Name, seen) {
		if left == 0 {
			return nil
		}
		b := pods[len(pods)-left]
		b.Name = name
		taken, err := m.createOne(want, b, fx)
		if err != nil {
			return err
		}
		if !taken {
			left--
		}
	}
	return nil
}

// createOne creates a pod, or reports that its name is taken.
func (m *Model) createOne(want *appv1.PodSet, b podset.NewPod, fx *sim.Effects) (taken bool, err error) {
	p := m.find(b.Name)
	switch {
	case p == nil:
		return false, fx.Do("create pod "+b.Name, func() error { return m.create(want, b) })
	case p.foreign || p.Terminating:
		return true, nil
	case p.Active():
		return false, nil
	case !p.Matches:
		if p.Owned {
			err = fx.Do("release pod "+b.Name, func() error { p.Owned = false; return nil })
		}
		return true, err
	}
	return false, fmt.Errorf("pod %q belongs to the set and is not in the cache yet", b.Name)
}

func (m *Model) create(want *appv1.PodSet, b podset.NewPod) error {
	if m.quota >= 0 && len(m.actives()) >= m.quota {
		return fmt.Errorf("exceeded quota: pods=%d", m.quota)
	}
	m.put(&pod{watched: true, Pod: podset.Pod{
		Name: b.Name, Owned: true, Matches: true, Template: podset.Fingerprint(want), Attempt: b.Attempt,
	}})
	if n := len(m.actives()); n > int(want.Spec.Replicas) {
		m.err = fmt.Errorf("creation of pod %s makes %d pods, want at most %d", b.Name, n, want.Spec.Replicas)
	}
	return nil
}

func (m *Model) put(p *pod) {
	m.created++
	p.UID, p.Created = types.UID(fmt.Sprintf("uid-%d", m.created)), m.now
	m.pods = append(m.pods, p)
}

func (m *Model) find(name string) *pod {
	for _, p := range m.pods {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// actives returns the pods that count in fact.
func (m *Model) actives() []*pod {
	return slices.DeleteFunc(slices.Clone(m.pods), func(p *pod) bool { return p.foreign || !p.Active() })
}
