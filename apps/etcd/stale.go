package etcd

import (
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
)

// Moved returns a [lifecycle.Deferred] if the world is no longer the one that the
// step was decided in. A driver calls it with a fresh observation just before it acts: a
// cache may be old, and a member may have died since.
func Moved(seen, fresh World, s lifecycle.Step) error {
	if seen.Listed != fresh.Listed {
		return moved("whether etcd has a quorum has changed since it was decided")
	}
	for _, m := range seen.Members {
		now, _ := fresh.named(m.Name)
		if m.Role != now.Role || m.ID != now.ID {
			return moved("etcd's member list has changed since it was decided: %s", m.Name)
		}
		if seen.servingVoter(m) && !fresh.servingVoter(now) {
			return moved("%s has ceased to serve since it was decided", m.Name)
		}
	}
	if seen.count(listed) != fresh.count(listed) {
		return moved("etcd's member list has grown since it was decided")
	}
	return recovered(seen, fresh, s)
}

// recovered objects to the replacement of a member that has come back.
func recovered(seen, fresh World, s lifecycle.Step) error {
	before, _ := seen.named(s.Target)
	now, _ := fresh.named(s.Target)
	if s.Name == RemoveMember && !seen.serving(before) && fresh.serving(now) {
		return moved("it serves again")
	}
	return nil
}

func moved(format string, args ...any) error {
	return &lifecycle.Deferred{Reason: fmt.Sprintf(format, args...)}
}
