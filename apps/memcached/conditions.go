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
	return lifecycle.Service{
		Available: answering > 0, AvailableReason: "ServersAnswer", Complete: answering >= size, CompleteReason: "AllAnswer",
		Message: fmt.Sprintf("%d of %d servers answer.", answering, size),
	}.Conditions(d)
}

// maxNodes bounds the names in the status, whose size the API server limits: a rolling update has
// more pods than spec.size allows.
const maxNodes = 500

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
	s.Nodes = s.Nodes[:min(len(s.Nodes), maxNodes)]
	s.Replicas = seen.remaining()
	s.ReadyReplicas = seen.ready()
	s.Ready = fmt.Sprintf("%d/%d", s.ReadyReplicas, want.Spec.Size)
	s.Selector = labels.SelectorFromSet(selector(want)).String()
	s.Image = image(want)
	s.Version = lifecycle.ImageTag(s.Image)
	s.DefaultImage = defaultImage(want)
	s.Endpoint = fmt.Sprintf("%s.%s.svc:%d", want.Name, want.Namespace, want.Spec.ContainerPort)
}
