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
	return lifecycle.Proceed(with(s, ArgID, hex(m.ID)))
}

// belowQuota reports whether at least a twentieth of the member's quota is free. It is false for
// a member whose database size is unknown.
func belowQuota(want desired, seen World, m Member) bool {
	limit := cmp.Or(m.Quota, quota(want.EtcdCluster, seen), defaultQuota)
	return m.DBSize > 0 && m.DBSize <= limit-limit/20
}

// reportAlarms reports alarms that need a person.
func reportAlarms(seen World) lifecycle.Decision {
	said := alarmsOf(seen)
	if said == "" {
		return lifecycle.Decision{}
	}
	return lifecycle.Block("AlarmRaised", said+
		" NOSPACE: raise spec.options.quota (and spec.storage.size), or compact and defragment; Governor then disarms the alarm. "+
		"CORRUPT: delete the volume of that member, and Governor replaces the member.")
}

// alarmsOf lists the raised alarms by member. It is empty if no member has raised an alarm.
func alarmsOf(seen World) string {
	var all []string
	for _, m := range seen.Members {
		if len(m.Alarms) > 0 {
			all = append(all, fmt.Sprintf("%s has raised %s.", m.Name, strings.Join(m.Alarms, ", ")))
		}
	}
	return strings.Join(all, " ")
}

func alarmCondition(seen World) lifecycle.Condition {
	c := lifecycle.Condition{Type: "Alarm", Status: metav1.ConditionFalse, Reason: "NoAlarm", Message: "etcd has raised no alarm."}
	if said := alarmsOf(seen); said != "" {
		m, _ := seen.find(func(m Member) bool { return len(m.Alarms) > 0 })
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, m.Alarms[0], said
	}
	return c
}
