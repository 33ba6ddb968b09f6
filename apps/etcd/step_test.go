package etcd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/apps/etcd"
)

// What was started by a turn that crashed is not started again.
func TestFormClusterStartsWhoIsMissing(t *testing.T) {
	half := scene{}.with("e-1", func(m *etcd.Member) { m.Set.Exists = true })
	d := etcd.Planner{}.Next(wanted(3), half.World, noon)
	var got []string
	for _, s := range etcd.Each(d.Step) {
		got = append(got, s.String())
		if s.Args[etcd.ArgVersion] == "" {
			t.Errorf("%s does not know what to start: %v", s, s.Args)
		}
	}
	if diff := cmp.Diff([]string{"StartMember e-0", "StartMember e-2"}, got); diff != "" {
		t.Error(diff)
	}
}
