package model

import (
	"slices"
	"strconv"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// corrupt is the alarm that a member's data differs from that of the others. Clients cannot write
// while it is raised, also after its member was removed.
const corrupt = "CORRUPT"

// RaiseCorrupt raises the alarm CORRUPT of the member.
func (m *Model) RaiseCorrupt(name string) {
	if e, ok := m.entry(name); ok {
		m.corrupt = append(m.corrupt, e.id)
	}
}

// leftAlarms are the alarms of members that are not in the list.
func (m *Model) leftAlarms() []etcd.Alarm {
	var all []etcd.Alarm
	for _, id := range m.corrupt {
		if m.listKnown() && !slices.ContainsFunc(m.list, func(e entry) bool { return e.id == id }) {
			all = append(all, etcd.Alarm{ID: id, Name: corrupt})
		}
	}
	return all
}

func (m *Model) disarm(s lifecycle.Step) {
	if s.Args[etcd.ArgAlarm] == corrupt {
		m.corrupt = slices.DeleteFunc(m.corrupt, func(id uint64) bool { return strconv.FormatUint(id, 16) == s.Args[etcd.ArgID] })
	}
}
