package memcached

import (
	"slices"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// World is the observed state of one instance.
type World struct {
	Rollout Rollout
	// Pods are sorted by name.
	Pods []Pod
}

// Rollout is the progress of the Deployment.
type Rollout struct {
	// Current reports whether the status is about the Deployment's present spec.
	Current bool
	// Template is the digest in the Deployment's template annotation; empty if it has
	// none.
	Template string
	// Updated and Total count the pods of the present template, and all pods.
	Updated, Total int32
	// Refused is the API server's reason for rejecting new pods; empty if it accepts them.
	Refused string
	// Stuck reports whether the progress deadline has passed.
	Stuck bool
}

// Pod is one memcached server.
type Pod struct {
	Name string
	// Ready is the pod's readiness.
	Ready bool
	// Updated reports whether the pod has the Deployment's present template, while pods of
	// another template exist.
	Updated bool
	// Terminating reports whether the pod is being deleted.
	Terminating bool
	// Problem is the reason why the pod is not ready.
	Problem lifecycle.PodProblem
	// Detail is Kubernetes' message about the problem.
	Detail string
	// Since is the time of the present state.
	Since time.Time
}

// ready counts the ready pods that are not being deleted.
func (w World) ready() int32 {
	var n int32
	for _, p := range w.Pods {
		if p.Ready && !p.Terminating {
			n++
		}
	}
	return n
}

// remaining counts the pods that are not being deleted.
func (w World) remaining() int32 {
	var n int32
	for _, p := range w.Pods {
		if !p.Terminating {
			n++
		}
	}
	return n
}

// mixedTemplates reports whether pods of two templates exist.
func (w World) mixedTemplates() bool {
	return slices.ContainsFunc(w.Pods, func(p Pod) bool { return p.Updated })
}

// withProblem returns the first pod with the problem. It skips pods that the rollout is
// replacing.
func (w World) withProblem(t lifecycle.PodProblem) (Pod, bool) {
	renewing := w.mixedTemplates()
	for _, p := range w.Pods {
		if p.Problem == t && !p.Terminating && p.Updated == renewing {
			return p, true
		}
	}
	return Pod{}, false
}
