// Package model is an in-memory memcached and cluster, for the simulator and for tests.
// The contract suite checks it against the behavior of a real cluster.
package model

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// pod is a pod with the image of its template.
type pod struct {
	memcached.Pod
	image string
}

// Model is a cluster with one instance. It implements sim.Model.
type Model struct {
	applied map[string]lifecycle.Object
	pods    []pod
	created int
	// observedSize and observedImage are the Deployment's spec that its controller has
	// observed.
	observedSize  int
	observedImage string
	quota         int
	missing       map[string]bool
}

// New returns an empty cluster whose registry has every image.
func New() *Model {
	return &Model{applied: map[string]lifecycle.Object{}, quota: -1, missing: map[string]bool{}}
}

// Observe implements sim.Model.
func (m *Model) Observe(time.Time) memcached.World {
	var seen memcached.World
	for _, p := range m.pods {
		p.Updated = p.image == m.observedImage && m.mixed()
		seen.Pods = append(seen.Pods, p.Pod)
	}
	slices.SortFunc(seen.Pods, func(a, b memcached.Pod) int { return cmp.Compare(a.Name, b.Name) })
	dep, ok := m.deployment()
	if !ok {
		return seen
	}
	size, image := spec(dep)
	seen.Rollout = memcached.Rollout{
		Current: m.observedSize == size && m.observedImage == image, Template: dep.Annotations[memcached.AnnotationTemplate],
		Total: int32(len(m.remaining())), Updated: int32(len(m.updated(image))),
	}
	if m.quota >= 0 && len(m.pods) >= m.quota && int(seen.Rollout.Updated) < size { // the quota rejects a surge, too
		seen.Rollout.Refused = fmt.Sprintf("exceeded quota: pods, limited: pods=%d", m.quota)
	}
	return seen
}

// Provide implements sim.Model. It applies only changed objects.
func (m *Model) Provide(_ *cachev1.Memcached, resources []lifecycle.Object, fx *sim.Effects) error {
	for _, obj := range resources {
		id := fmt.Sprintf("%T %s", obj, obj.GetName())
		if reflect.DeepEqual(m.applied[id], obj) {
			continue
		}
		err := fx.Do("apply "+id, func() error { m.applied[id] = obj; return nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// Act implements sim.Model. Memcached has no steps.
func (m *Model) Act(*cachev1.Memcached, memcached.World, lifecycle.Step, *sim.Effects) error {
	return errors.New("memcached has no steps")
}

func (m *Model) deployment() (*appsv1.Deployment, bool) {
	for _, obj := range m.applied {
		if dep, ok := obj.(*appsv1.Deployment); ok {
			return dep, true
		}
	}
	return nil, false
}

func spec(dep *appsv1.Deployment) (size int, image string) {
	return int(*dep.Spec.Replicas), dep.Spec.Template.Spec.Containers[0].Image
}

// mixed reports whether pods of several images exist.
func (m *Model) mixed() bool {
	staying := m.remaining()
	return len(m.updated(m.observedImage)) > 0 && len(m.updated(m.observedImage)) < len(staying)
}

func (m *Model) remaining() []*pod { return m.filter(func(p *pod) bool { return !p.Terminating }) }

func (m *Model) updated(image string) []*pod {
	return m.filter(func(p *pod) bool { return !p.Terminating && p.image == image })
}

func (m *Model) filter(is func(*pod) bool) []*pod {
	var some []*pod
	for i := range m.pods {
		if is(&m.pods[i]) {
			some = append(some, &m.pods[i])
		}
	}
	return some
}
