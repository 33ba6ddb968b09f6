package etcd_test

import (
	"strings"
	"testing"

	"github.com/governor-dev/governor/apps/etcd"
)

// sated is a member that has reached its quota.
func sated(m *etcd.Member) { m.Alarms, m.DBSize, m.Quota = []string{"NOSPACE"}, 16<<20, 16<<20 }

// relieved is a member below its quota whose alarm is still raised.
func relieved(m *etcd.Member) { sated(m); m.Quota = 64 << 20 }

func TestNoSpaceAlarmIsDisarmedBelowQuota(t *testing.T) {
	unknown := func(m *etcd.Member) { relieved(m); m.DBSize = 0 }
	corrupt := func(m *etcd.Member) { relieved(m); m.Alarms = []string{"CORRUPT"} }
	oldRelease := func(m *etcd.Member) { relieved(m); m.Quota = 0 }
	pages := map[string]page{
		"Full":       {"a person has to make room", wanted(3), everyone(serving(3), sated), "Blocked AlarmRaised"},
		"Raised":     {"the quota was raised", wanted(3), everyone(serving(3), relieved), "Proceed Disarm e-0 (SpaceAvailable)"},
		"OneLeft":    {"one alarm after the other", wanted(3), everyone(serving(3), relieved).with("e-0", func(m *etcd.Member) { m.Alarms = nil }), "Proceed Disarm e-1 (SpaceAvailable)"},
		"OneFull":    {"a full member would raise it again", wanted(3), everyone(serving(3), relieved).with("e-2", sated), "Blocked AlarmRaised"},
		"Unknown":    {"a member without a known size counts as full", wanted(3), everyone(serving(3), relieved).with("e-2", unknown), "Blocked AlarmRaised"},
		"OldRelease": {"before 3.6 a member does not report its quota", wanted(3), everyone(serving(3), oldRelease), "Proceed Disarm e-0 (SpaceAvailable)"},
		"Corrupt":    {"a corrupt member is for a person", wanted(3), everyone(serving(3), corrupt), "Blocked AlarmRaised"},
	}
	for name, p := range pages {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(p.want, p.seen.World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != p.says {
				t.Errorf("%s:\n got %s\nwant %s", p.reason, d, p.says)
			}
		})
	}
	if plan := steps(wanted(3), everyone(serving(3), relieved).World); plan != "Disarm e-0\nDisarm e-1\nDisarm e-2\nSettled AsDeclared" {
		t.Errorf("the plan is %s", plan)
	}
}

func TestConditionListsAllAlarms(t *testing.T) {
	seen := everyone(serving(3), sated).World
	d := etcd.Planner{}.Next(wanted(3), seen, noon)
	said := []string{d.Message}
	for _, c := range (etcd.Planner{}).Conditions(wanted(3), seen, d) {
		if c.Type == "Alarm" {
			said = append(said, c.Message)
		}
	}
	for _, message := range said {
		for _, name := range []string{"e-0", "e-1", "e-2"} {
			if !strings.Contains(message, name+" has raised NOSPACE.") {
				t.Errorf("%q does not name %s", message, name)
			}
		}
	}
	if len(said) != 2 {
		t.Errorf("the condition Alarm is missing: %q", said)
	}
}
