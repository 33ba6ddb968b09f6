package memcached

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Conditions returns Available (some server is ready) and Degraded (not all are).
func (Planner) Conditions(want *cachev1.Memcached, seen World, d lifecycle.Decision) []lifecycle.Condition {
	answering, size := seen.ready(), want.Spec.Size
	message := fmt.Sprintf("%d of %d servers answer.", answering, size)
	available := lifecycle.Condition{
		Type: "Available", Status: lifecycle.StatusOf(answering > 0), Reason: "ServersAnswer", Message: message,
	}
	if answering == 0 {
		available.Reason = d.Reason
	}
	degraded := lifecycle.Condition{
		Type: "Degraded", Status: lifecycle.StatusOf(answering < size), Reason: "AllAnswer", Message: message,
	}
	if answering < size {
		degraded.Reason = d.Reason
	}
	return []lifecycle.Condition{available, degraded}
}

// Status sets the counts, the names and the endpoint.
func (Planner) Status(want *cachev1.Memcached, seen World) {
	s := &want.Status
	s.Nodes = nil
	for _, p := range seen.Pods {
		if !p.Terminating {
			s.Nodes = append(s.Nodes, p.Name)
		}
	}
	slices.Sort(s.Nodes)
	s.Replicas = seen.remaining()
	s.ReadyReplicas = seen.ready()
	s.Ready = fmt.Sprintf("%d/%d", s.ReadyReplicas, want.Spec.Size)
	s.Selector = labels.SelectorFromSet(selector(want)).String()
	s.Image = image(want)
	s.DefaultImage = defaultImage(want)
	s.Endpoint = fmt.Sprintf("%s.%s.svc:%d", want.Name, want.Namespace, want.Spec.ContainerPort)
}
