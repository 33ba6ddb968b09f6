package contract

import (
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// templateRefused: no member restarts for a pod that the API server rejects.
func templateRefused(t *testing.T, s System) {
	keepsMembers(t, s, "TemplateRefused", func(spec *etcdv1.EtcdClusterSpec) { spec.Pod.ServiceAccountName = "none" })
}

// imageMissing: no member restarts for an image that does not exist.
func imageMissing(t *testing.T, s System) {
	keepsMembers(t, s, string(lifecycle.PodProblemImagePullBackOff), func(spec *etcdv1.EtcdClusterSpec) { spec.Version = "3.6.99" })
}

// keepsMembers: every member keeps its pod although the edit blocks, and a correction of the spec
// is enough.
func keepsMembers(t *testing.T, s System, reason string, edit func(*etcdv1.EtcdClusterSpec)) {
	t.Helper()
	before := forms(t, s, 3)
	runs := map[string]string{}
	for _, m := range s.Observe(t).Members {
		runs[m.Name] = m.Pod.Revision
	}
	s.Apply(t, edit)
	s.Settles(t, lifecycle.OutcomeBlocked, reason)
	s.Rests(t)
	c := s.Settles(t, lifecycle.OutcomeBlocked, reason)
	keeps(t, before, c)
	if c.Status.ReadyReplicas != 3 {
		t.Errorf("%d members serve", c.Status.ReadyReplicas)
	}
	for _, m := range s.Observe(t).Members {
		if m.Pod.Revision != runs[m.Name] || m.Set.Revision != runs[m.Name] {
			t.Errorf("%s has the new template: %+v", m.Name, m)
		}
	}
	s.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Pod.ServiceAccountName, spec.Version = "", before.Spec.Version
	})
	keeps(t, before, rests(t, s))
}
