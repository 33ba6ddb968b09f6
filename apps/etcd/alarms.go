package etcd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// noSpace is the alarm with which a member refuses writes: its database has reached its quota.
const noSpace = "NOSPACE"

// roomAgain ends the alarm NOSPACE when every member's database is below its quota: the quota was
// raised, or the database was defragmented. A member without room would raise it again at once.
func roomAgain(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return slices.Contains(m.Alarms, noSpace) })
	_, cramped := seen.find(func(m Member) bool { return listed(m) && !roomy(want, seen, m) })
	if !ok || cramped || m.ID == 0 {
		return lifecycle.Decision{}
	}
	s := repair(step(Disarm, m, "SpaceAvailable", "%s has raised %s, and every database is below its quota again.", m.Name, noSpace))
	return lifecycle.Proceed(with(s, ArgID, hex(m.ID)))
}

// roomy says that a twentieth of the member's quota is free. A member of which nothing is known
// has no room.
func roomy(want desired, seen World, m Member) bool {
	limit := cmp.Or(m.Quota, quota(want.EtcdCluster, seen), usualQuota)
	return m.DBSize > 0 && m.DBSize <= limit-limit/20
}

// alarmed reports alarms that need a person.
func alarmed(seen World) lifecycle.Decision {
	said := alarmsOf(seen)
	if said == "" {
		return lifecycle.Decision{}
	}
	return lifecycle.Block("AlarmRaised", said+
		" NOSPACE: raise spec.options.quota (and spec.storage.size), or compact and defragment; the alarm ends by itself then. "+
		"CORRUPT: delete the volume of that member, and it is replaced.")
}

// alarmsOf says which members have raised which alarms; empty if none has.
func alarmsOf(seen World) string {
	var all []string
	for _, m := range seen.Members {
		if len(m.Alarms) > 0 {
			all = append(all, fmt.Sprintf("%s has raised %s.", m.Name, strings.Join(m.Alarms, ", ")))
		}
	}
	return strings.Join(all, " ")
}

func alarm(seen World) lifecycle.Condition {
	c := lifecycle.Condition{Type: "Alarm", Status: metav1.ConditionFalse, Reason: "NoAlarm", Message: "etcd has raised no alarm."}
	if said := alarmsOf(seen); said != "" {
		m, _ := seen.find(func(m Member) bool { return len(m.Alarms) > 0 })
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, m.Alarms[0], said
	}
	return c
}
