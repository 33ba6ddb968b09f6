package etcd

import (
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
)

// Moved returns an error if the world is no longer the one that the step was
// decided in. A driver calls it with a fresh observation just before it acts: a
// cache may be old, and a member may have died since.
func Moved(seen, fresh World, s lifecycle.Step) error {
	if seen.Listed != fresh.Listed {
		return fmt.Errorf("%s: whether etcd has a quorum has changed since it was decided", s)
	}
	for _, m := range seen.Members {
		now, _ := fresh.named(m.Name)
		if m.Role != now.Role || m.ID != now.ID {
			return fmt.Errorf("%s: etcd's member list has changed since it was decided: %s", s, m.Name)
		}
		if seen.servingVoter(m) && !fresh.servingVoter(now) {
			return fmt.Errorf("%s: %s has ceased to serve since it was decided", s, m.Name)
		}
	}
	if seen.count(listed) != fresh.count(listed) {
		return fmt.Errorf("%s: etcd's member list has grown since it was decided", s)
	}
	return recovered(seen, fresh, s)
}

// recovered objects to the replacement of a member that has come back.
func recovered(seen, fresh World, s lifecycle.Step) error {
	before, _ := seen.named(s.Target)
	now, _ := fresh.named(s.Target)
	if s.Name == RemoveMember && !seen.serving(before) && fresh.serving(now) {
		return fmt.Errorf("%s: it serves again", s)
	}
	return nil
}
