package etcd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
)

// sated is a member that has reached its quota.
func sated(m *etcd.Member) { m.Alarms, m.DBSize, m.Quota = []string{"NOSPACE"}, 16<<20, 16<<20 }

// relieved is a member below its quota whose alarm is still raised.
func relieved(m *etcd.Member) { sated(m); m.Quota = 64 << 20 }

// corrupted is a member that reports corrupt data.
func corrupted(m *etcd.Member) { m.Alarms = []string{"CORRUPT"} }

// oldProbe is the scene in which no pod is ready, because of the alarm.
func oldProbe(s scene) scene {
	return everyone(s, func(m *etcd.Member) { m.Pod.Ready, m.Pod.Since = false, noon.Add(-time.Hour) })
}

// left is a scene with the alarm of a member that is not in etcd's list.
func left(id uint64, name string) scene {
	s := serving(3)
	s.LeftAlarms = []etcd.Alarm{{ID: id, Name: name}}
	return s
}

func TestNoSpaceAlarmIsDisarmedBelowQuota(t *testing.T) {
	unknown := func(m *etcd.Member) { relieved(m); m.DBSize = 0 }
	oldRelease := func(m *etcd.Member) { relieved(m); m.Quota = 0 }
	pages := map[string]page{
		"Full":       {"a person has to make room", wanted(3), everyone(serving(3), sated), "Blocked AlarmRaised"},
		"Raised":     {"the quota was raised", wanted(3), everyone(serving(3), relieved), "Proceed Disarm e-0 (SpaceAvailable)"},
		"OneLeft":    {"one alarm after the other", wanted(3), everyone(serving(3), relieved).with("e-0", func(m *etcd.Member) { m.Alarms = nil }), "Proceed Disarm e-1 (SpaceAvailable)"},
		"OneFull":    {"a full member would raise it again", wanted(3), everyone(serving(3), relieved).with("e-2", sated), "Blocked AlarmRaised"},
		"Unknown":    {"a member without a known size counts as full", wanted(3), everyone(serving(3), relieved).with("e-2", unknown), "Blocked AlarmRaised"},
		"OldRelease": {"before 3.6 a member does not report its quota", wanted(3), everyone(serving(3), oldRelease), "Proceed Disarm e-0 (SpaceAvailable)"},
		"Corrupt":    {"corrupt members are for a person", wanted(3), everyone(serving(3), corrupted), "Blocked AlarmRaised"},
		"Wrong":      {"clients must not read from a corrupt member", wanted(3), serving(3).with("e-1", corrupted), "Proceed RemoveFromService e-1 (MemberCorrupt)"},
		"WrongOld":   {"nor while no pod is ready, because the probe of an older operator reports the alarm", wanted(3), oldProbe(serving(3).with("e-1", corrupted)), "Proceed RemoveFromService e-1 (MemberCorrupt)"},
		"Reported":   {"then a user decides", wanted(3), oldProbe(serving(3).with("e-1", corrupted).with("e-1", hidden)), "Blocked AlarmRaised"},
		"NoLonger":   {"a user has disarmed the alarm", wanted(3), serving(3).with("e-1", hidden), "Proceed AddToService e-1 (MemberServes)"},
		"NoGrowth":   {"no member may copy corrupt data", wanted(5), serving(3).with("e-1", corrupted).with("e-1", hidden), "Blocked AlarmRaised"},
		"Goes":       {"the volume of the corrupt member is being deleted", wanted(3), oldProbe(serving(3).with("e-1", corrupted).with("e-1", hidden).with("e-1", claimTerminating)), "Proceed RemoveMember e-1 (MemberCorrupt)"},
		"GoesLeader": {"so is that of the leader", wanted(3), serving(3).with("e-0", corrupted).with("e-0", hidden).with("e-0", claimTerminating), "Proceed MoveLeader e-1 (MemberCorrupt)"},
		"Gone":       {"its volume is deleted", wanted(3), oldProbe(serving(3).with("e-1", corrupted).with("e-1", lost)), "Proceed RemoveMember e-1 (MemberDead)"},
		"Left":       {"etcd keeps the alarm of a removed member", wanted(3), left(7, "CORRUPT"), "Proceed Disarm 7 (MemberRemoved)"},
		"LeftFull":   {"also for want of space", wanted(3), left(7, "NOSPACE"), "Proceed Disarm 7 (MemberRemoved)"},
		"Nameless":   {"or does not know which member is meant", wanted(3), left(0, "CORRUPT"), "Blocked AlarmRaised"},
	}
	for name, p := range pages {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(p.want, p.seen.World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != p.says {
				t.Errorf("%s:\n got %s\nwant %s", p.reason, d, p.says)
			}
		})
	}
	gone := oldProbe(serving(3).with("e-1", corrupted).with("e-1", lost))
	if plan := steps(wanted(3), gone.World); plan != "RemoveMember e-1: 2 of 2 voters serve, none may fail\nDeleteMember e-1: 2 of 2 voters serve, none may fail\nDisarm 2\nAddLearner e-3\nStartMember e-3\n(CaughtUp e-3)\nPromote e-3\nAddToService e-3\nSettled AsDeclared" {
		t.Errorf("the plan is %s", plan)
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
