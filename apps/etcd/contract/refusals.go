package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// refusals are etcd's own checks, which the model must have too: the simulator relies on them.
func refusals(t *testing.T, s System) {
	c := forms(t, s, 3)
	s.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Paused = true })
	accepted(t, s, Add(etcd.AddLearner, "stray-1"))
	learner := named(t, s, "a learner", func(m etcd.Member) bool { return m.Role == etcd.Learner }).Name
	refused(t, s, Add(etcd.AddLearner, "stray-2"), "too many learner members")
	refused(t, s, on(t, s, etcd.Promote, learner), "in sync with leader")
	accepted(t, s, on(t, s, etcd.RemoveMember, learner))

	down := follower(t, c)
	s.LoseSet(t, down)
	refused(t, s, Add(etcd.AddLearner, "stray-3"), "unhealthy cluster")
	refused(t, s, Add(etcd.AddVoter, "stray-4"), "unhealthy cluster")
	other := named(t, s, "a follower that serves", func(m etcd.Member) bool { return m.Name != down && !m.Leads })
	refused(t, s, on(t, s, etcd.RemoveMember, other.Name), "unhealthy cluster")
	accepted(t, s, on(t, s, etcd.RemoveMember, down))
	s.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Paused = false })
	replaced(t, c, rests(t, s), down)
}

// Add adds a member that Governor does not manage.
func Add(name, member string) lifecycle.Step {
	return lifecycle.Step{Name: name, Target: member, Args: map[string]string{etcd.ArgPeerURL: "http://" + member + ".invalid:2380"}}
}

func on(t *testing.T, s System, name, member string) lifecycle.Step {
	t.Helper()
	named(t, s, member, func(m etcd.Member) bool { return m.Name == member })
	return On(s.Observe(t), name, member)
}

// On applies the step to a member of the list. A member that is not in it has the ID 0, which no
// member has.
func On(seen etcd.World, name, member string) lifecycle.Step {
	var id uint64
	for _, m := range seen.Members {
		if m.Name == member {
			id = m.ID
		}
	}
	return lifecycle.Step{Name: name, Target: member, Args: map[string]string{etcd.ArgID: strconv.FormatUint(id, 16)}}
}

// named returns the first listed member that satisfies the predicate.
func named(t *testing.T, s System, what string, is func(etcd.Member) bool) (found etcd.Member) {
	t.Helper()
	s.Await(t, what+" is in the member list", func() error {
		w := s.Observe(t)
		i := slices.IndexFunc(w.Members, func(m etcd.Member) bool { return m.Role != etcd.Outside && is(m) })
		if i < 0 {
			return fmt.Errorf("the members are %+v", w.Members)
		}
		found = w.Members[i]
		return nil
	})
	return found
}

// accepted retries: etcd requires its members to have been connected for some seconds.
func accepted(t *testing.T, s System, step lifecycle.Step) {
	t.Helper()
	s.Await(t, "etcd accepts "+step.String(), func() error { return s.Act(t, step) })
}

func refused(t *testing.T, s System, step lifecycle.Step, words string) {
	t.Helper()
	if err := s.Act(t, step); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v, want %q", step, err, words)
	}
}
