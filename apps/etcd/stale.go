package etcd

import (
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
)

// Moved returns a [lifecycle.Deferred] if the world differs from the one in which the step was
// decided. A driver calls it with a fresh observation just before it acts: a cache may be
// outdated, and a member may have failed since.
func Moved(seen, fresh World, s lifecycle.Step) error {
	if seen.Listed != fresh.Listed {
		return deferred("etcd has gained or lost its quorum since the decision")
	}
	for _, m := range seen.Members {
		now, _ := fresh.named(m.Name)
		if m.Role != now.Role || m.ID != now.ID {
			return deferred("etcd's member list has changed since the decision: %s", m.Name)
		}
		if seen.servingVoter(m) && !fresh.servingVoter(now) {
			return deferred("%s has ceased to serve since the decision", m.Name)
		}
	}
	if seen.count(listed) != fresh.count(listed) {
		return deferred("etcd's member list has grown since the decision")
	}
	if now, _ := fresh.named(s.Target); s.Name == Restart && now.Health == Healthy && fresh.Template.Refuses(TemplateOf(s)) {
		return deferred("the API server rejects its next pod: %s", fresh.Template.Refusal)
	}
	return recovered(seen, fresh, s)
}

// recovered defers the replacement of a member that has recovered, or no longer answers for another
// cluster.
func recovered(seen, fresh World, s lifecycle.Step) error {
	before, _ := seen.named(s.Target)
	now, _ := fresh.named(s.Target)
	switch {
	case s.Name == RemoveMember && !seen.serving(before) && fresh.serving(now):
		return deferred("it serves again")
	case s.Name == RemoveMember && before.Health == Unknown && now.Health == Healthy:
		return deferred("it answers again")
	case s.Name == RemoveMember && before.Foreign && !now.Foreign:
		return deferred("it no longer answers for another cluster")
	}
	return nil
}

func deferred(format string, args ...any) error {
	return &lifecycle.Deferred{Reason: fmt.Sprintf(format, args...)}
}
