package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// obstacles: a StatefulSet that is being deleted and that a finalizer keeps, and a ConfigMap
// that has the name of the next member's, hold the replacement of no other member. The member
// of the StatefulSet serves on, and keeps its data when the finalizer goes.
func obstacles(t *testing.T, s System) {
	before := forms(t, s, 3)
	keptName, lost := names(before)[0], names(before)[1]
	next := strings.TrimSuffix(lost, "1") + "3"
	s.HoldSet(t, keptName)
	s.TakeName(t, next)
	s.LoseVolumes(t, lost)
	s.Await(t, "the lost member is replaced", func() error { return servesWithout(s.Observe(t), lost) })
	s.Settles(t, lifecycle.OutcomeBlocked, "DeletionStuck")
	s.LetGo(t, keptName)
	after := rests(t, s)
	replaced(t, before, after, lost)
	if slices.Contains(names(after), next) {
		t.Errorf("the name %s is taken: %v", next, names(after))
	}
}

func servesWithout(seen etcd.World, lost string) error {
	serving := 0
	for _, m := range seen.Members {
		switch {
		case m.Name == lost:
			return fmt.Errorf("%s is still there", lost)
		case m.Role == etcd.Voter && m.Health == etcd.Healthy && m.Pod.Ready:
			serving++
		}
	}
	if serving < 3 {
		return fmt.Errorf("only %d members serve", serving)
	}
	return nil
}
