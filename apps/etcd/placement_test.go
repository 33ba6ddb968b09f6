package etcd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// TestReplaceAfter checks that a silent member is replaced after spec.replaceAfter, and never
// while its node is in maintenance.
func TestReplaceAfter(t *testing.T) {
	cases := map[string]struct {
		after  time.Duration
		silent time.Duration
		node   string
		says   string
	}{
		"Default":      {0, 6 * time.Minute, "", "Proceed RemoveMember e-1 (MemberDead)"},
		"DefaultEarly": {0, 4 * time.Minute, "", "Wait Serving e-1 (MemberNotServing)"},
		"Longer":       {time.Hour, 6 * time.Minute, "", "Wait Serving e-1 (MemberNotServing)"},
		"LongerOver":   {time.Hour, 61 * time.Minute, "", "Proceed RemoveMember e-1 (MemberDead)"},
		"Shorter":      {30 * time.Second, time.Minute, "", "Proceed RemoveMember e-1 (MemberDead)"},
		"Cordoned":     {30 * time.Second, 24 * time.Hour, "n1", "Wait Serving e-1 (NodeInMaintenance)"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := wanted(3)
			if c.after > 0 {
				want.Spec.ReplaceAfter = &metav1.Duration{Duration: c.after}
			}
			seen := serving(3).with("e-1", down(c.silent)).with("e-1", func(m *etcd.Member) { m.Maintenance = c.node })
			d := etcd.Planner{}.Next(want, seen.World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != c.says || !strings.Contains(d.Message, c.node) {
				t.Errorf("%s, want %s", d, c.says)
			}
		})
	}
	named := serving(3).with("e-1", down(24*time.Hour)).with("e-1", func(m *etcd.Member) { m.Maintenance, m.MaintenanceBy = "n1", `the policy "rack-7"` })
	if d := (etcd.Planner{}).Next(wanted(3), named.World, noon); d.Reason != "NodeInMaintenance" ||
		!strings.Contains(d.Message, `the policy "rack-7" says that the node n1 is in maintenance`) {
		t.Errorf("a member whose node a policy names: %s", d)
	}
	gone := serving(3).with("e-1", lost).with("e-1", func(m *etcd.Member) { m.Maintenance = "n1" })
	if d := (etcd.Planner{}).Next(wanted(3), gone.World, noon); d.Step.Name != etcd.RemoveMember {
		t.Errorf("a member that lost its data waits for its node: %s", d)
	}
	back := serving(3).with("e-1", down(time.Hour)).with("e-1", func(m *etcd.Member) { m.Returned = noon.Add(-4 * time.Minute) })
	if d := (etcd.Planner{}).Next(wanted(3), back.World, noon); d.Reason != "MemberNotServing" {
		t.Errorf("a member has no time to come back after its node was uncordoned: %s", d)
	}
	stuck := serving(3).with("e-1", trouble(lifecycle.PodProblemUnschedulable, time.Hour)).with("e-1", func(m *etcd.Member) { m.Maintenance = "n1" })
	if d := (etcd.Planner{}).Next(wanted(3), stuck.World, noon); d.Reason != "NodeInMaintenance" {
		t.Errorf("a member whose volume is on a cordoned node does not wait for it: %s", d)
	}
}

// TestFaultTolerantNamesFailureDomain checks that the condition names the failure
// domain whose loss breaks the quorum.
func TestFaultTolerantNamesFailureDomain(t *testing.T) {
	cases := map[string]struct {
		nodes, zones string
		says         string
	}{
		"Spread":      {"1 2 3", "a b c", ""},
		"TwoZones":    {"1 2 3", "a a b", "The loss of the zone a would break the quorum."},
		"OneNode":     {"1 1 2", "a b c", "The loss of the node 1 would break the quorum."},
		"FiveSpread":  {"1 2 3 4 5", "a a b b c", ""},
		"FiveCrowded": {"1 2 3 4 5", "a a a b c", "The loss of the zone a would break the quorum."},
		"NotKnown":    {"1 2 3", "a a -", ""},
		"Two":         {"1 1", "a a", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			nodes, zones := strings.Fields(c.nodes), strings.Fields(c.zones)
			seen := serving(len(nodes))
			for i := range nodes {
				seen = seen.with(fmt.Sprintf("e-%d", i), func(m *etcd.Member) {
					m.Pod.Node, m.Pod.Zone = nodes[i], strings.Trim(zones[i], "-")
				})
			}
			for _, cond := range (etcd.Planner{}).Conditions(wanted(int32(len(nodes))), seen.World, lifecycle.Decision{}) {
				if cond.Type == "FaultTolerant" && (c.says == "" && strings.Contains(cond.Message, "loss") || !strings.Contains(cond.Message, c.says)) {
					t.Errorf("%s, want %s", cond.Message, c.says)
				}
			}
		})
	}
}
