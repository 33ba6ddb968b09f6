package etcd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// noSpace is the alarm that a member raises when its database reaches its quota. It then refuses
// writes.
const noSpace = "NOSPACE"

// corrupt is the alarm that a member's data differs from that of the others. Every member then
// refuses writes, and before this operator's probe excluded the alarm, no pod was ready.
const corrupt = "CORRUPT"

// Alarm is an alarm of a member that is not in etcd's list; its ID is 0 if etcd does not know which
// member is meant.
type Alarm struct {
	ID   uint64
	Name string
}

// disarmNoSpace ends the alarm NOSPACE when every member's database is below its quota, after
// the quota was raised or the database defragmented. A member that is still full would raise the
// alarm again immediately.
func disarmNoSpace(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return slices.Contains(m.Alarms, noSpace) })
	_, full := seen.find(func(m Member) bool { return listed(m) && !belowQuota(want, seen, m) })
	if !ok || full || m.ID == 0 {
		return lifecycle.Decision{}
	}
	s := repair(step(Disarm, m, "SpaceAvailable", "%s has raised %s, and every database is now below its quota.", m.Name, noSpace))
	return lifecycle.Proceed(s.WithArgs(alarmArgs{MemberID(m.ID), noSpace}))
}

// disarmRemoved ends the alarms of members that are no longer in etcd's list: etcd keeps them, and
// refuses writes.
func disarmRemoved(seen World) lifecycle.Decision {
	for _, a := range seen.LeftAlarms {
		if a.ID != 0 && seen.Listed {
			m := Member{Name: hex(a.ID)}
			s := repair(step(Disarm, m, "MemberRemoved", "The member %s has raised %s, and is no longer in etcd's member list.", m.Name, a.Name))
			return lifecycle.Proceed(s.WithArgs(alarmArgs{MemberID(a.ID), a.Name}))
		}
	}
	return lifecycle.Decision{}
}

func isCorrupt(m Member) bool { return slices.Contains(m.Alarms, corrupt) }

// corrupt reports whether the alarm CORRUPT is raised.
func (w World) corrupt() bool {
	_, is := w.find(isCorrupt)
	return is || slices.ContainsFunc(w.LeftAlarms, func(a Alarm) bool { return a.Name == corrupt })
}

// corruptMember removes a corrupt member whose volume a user has deleted, before another member could
// copy its data. All other changes wait until the user decides which data is right.
func corruptMember(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return voter(m) && isCorrupt(m) && claimTerminating(m) })
	switch {
	case ok && seen.count(voter) > 1:
		if successor, able := newLeader(seen, m); m.Leads && able && present(want.EtcdCluster, seen).can(leaderMoves) {
			return lifecycle.Proceed(repair(moveLeader(m, successor, "MemberCorrupt", "%s leads, and its data is corrupt; the leadership moves to %s.", m.Name, successor.Name)))
		}
		return lifecycle.Proceed(repair(remove(m, "MemberCorrupt", "The data of %s is corrupt, and its %s; Governor replaces it.", m.Name, doom(m))))
	case seen.corrupt():
		return reportAlarms(seen)
	}
	return lifecycle.Decision{}
}

// misleadingMember removes a member from the client Service that answers clients with wrong data: it
// has the data of another cluster, or corrupt data while others serve.
func misleadingMember(seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && seen.misleads(m) && m.Set.Exists && !hiddenFromClients(m) })
	if !ok {
		return lifecycle.Decision{}
	}
	reason, why := "MemberForeign", "its volume has the data of another cluster"
	if !m.Foreign {
		reason, why = "MemberCorrupt", "its data is corrupt"
	}
	s := class(step(RemoveFromService, m, reason, "The client Service no longer includes %s: %s.", m.Name, why), lifecycle.ClassDisruptive)
	return lifecycle.Proceed(repair(s))
}

// misleads reports whether clients must not ask the member.
func (w World) misleads(m Member) bool {
	_, others := w.find(func(o Member) bool { return ours(o) && w.servingVoter(o) && !isCorrupt(o) && o.Set.Exposure == Exposed })
	return m.Foreign || isCorrupt(m) && m.Health != Unknown && others
}

// hiddenFromClients reports that neither the member's pod nor its next one is in the client Service.
func hiddenFromClients(m Member) bool {
	return m.Set.Exposure == Hidden && (!m.Pod.Exists || m.Pod.Leaving || m.Pod.Exposure == Hidden)
}

// largestRequest is more than the largest request that etcd takes by default: 1.5 MiB
// (--max-request-bytes). etcd raises NOSPACE for a request that would exceed the quota.
const largestRequest = 2 << 20

// belowQuota reports whether at least a twentieth of the member's quota is free, and room for the
// largest request. It is false for a member whose database size is unknown.
func belowQuota(want desired, seen World, m Member) bool {
	limit := cmp.Or(m.Quota, quota(want.EtcdCluster, seen), defaultQuota)
	return m.DBSize > 0 && m.DBSize <= limit-max(limit/20, largestRequest)
}

// reportAlarms reports alarms that need a person.
func reportAlarms(seen World) lifecycle.Decision {
	said := alarmsOf(seen)
	if said == "" {
		return lifecycle.Decision{}
	}
	for _, a := range alarmAdvice {
		if strings.Contains(said, a.alarm) {
			said += " " + a.advice
		}
	}
	return lifecycle.Block("AlarmRaised", said)
}

var alarmAdvice = []struct{ alarm, advice string }{
	{"NOSPACE", "NOSPACE: raise spec.options.quota (and spec.storage.size), or compact and defragment; Governor then disarms the alarm."},
	{"CORRUPT", "CORRUPT: delete the volume of that member, and Governor replaces the member."},
}

// alarmsOf lists the raised alarms by member. It is empty if no member has raised an alarm.
func alarmsOf(seen World) string {
	var all []string
	for _, m := range seen.Members {
		if len(m.Alarms) > 0 {
			all = append(all, fmt.Sprintf("%s has raised %s.", m.Name, strings.Join(m.Alarms, ", ")))
		}
	}
	for _, a := range seen.LeftAlarms {
		by := "A member that etcd does not name"
		if a.ID != 0 {
			by = "The removed member " + hex(a.ID)
		}
		all = append(all, fmt.Sprintf("%s has raised %s.", by, a.Name))
	}
	return strings.Join(all, " ")
}

func firstAlarm(seen World) string {
	if m, ok := seen.find(func(m Member) bool { return len(m.Alarms) > 0 }); ok {
		return m.Alarms[0]
	}
	return seen.LeftAlarms[0].Name
}

func alarmCondition(seen World) lifecycle.Condition {
	c := lifecycle.Condition{Type: "Alarm", Status: metav1.ConditionFalse, Reason: "NoAlarm", Message: "etcd has raised no alarm."}
	if said := alarmsOf(seen); said != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, firstAlarm(seen), said
	}
	return c
}
