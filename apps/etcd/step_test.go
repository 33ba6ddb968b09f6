package etcd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/apps/etcd"
)

// A member started by a crashed reconcile is not started again.
func TestFormClusterStartsMissingMembers(t *testing.T) {
	half := scene{}.with("e-1", func(m *etcd.Member) { m.Set.Exists = true })
	d := etcd.Planner{}.Next(wanted(3), half.World, noon)
	var got []string
	for _, s := range etcd.Each(d.Step) {
		got = append(got, s.String())
		if s.Args[etcd.ArgVersion] == "" {
			t.Errorf("%s does not contain what to start: %v", s, s.Args)
		}
	}
	if diff := cmp.Diff([]string{"StartMember e-0", "StartMember e-2"}, got); diff != "" {
		t.Error(diff)
	}
}
