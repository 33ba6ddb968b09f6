package model_test

import (
	"slices"
	"strings"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

func (s *system) zones() string {
	var all []string
	for _, m := range s.model.Observe(s.now).Members {
		all = append(all, m.Pod.Zone)
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// A member that was scheduled to another zone moves back when its zone has room again, and only if
// the spec requests it.
func TestMembersMoveToZoneWithRoom(t *testing.T) {
	s := newSystem(3)
	s.model.CloseZone("c")
	s.settles(t, lifecycle.OutcomeSettled, "AsDeclared")
	if s.zones() == "abc" {
		t.Fatal("no member is misplaced")
	}
	s.model.OpenZone("c")
	before := s.zones()
	for range 100 {
		s.turn(t)
	}
	if s.zones() != before {
		t.Errorf("with Manual, members moved from %s to %s", before, s.zones())
	}
	s.want.Spec.Rebalance = etcdv1.RebalanceAutomatic
	for range 300 {
		s.turn(t)
	}
	s.settles(t, lifecycle.OutcomeSettled, "AsDeclared")
	if s.zones() != "abc" {
		t.Errorf("the members are in the zones %s", s.zones())
	}
}
