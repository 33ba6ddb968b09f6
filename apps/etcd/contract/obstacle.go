package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// obstacles: a StatefulSet whose deletion a finalizer delays, and a ConfigMap with the name of
// the next member's, delay no replacement of another member. The member of the StatefulSet
// continues to serve, and keeps its data when the finalizer is removed.
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
			return fmt.Errorf("%s still exists", lost)
		case m.Role == etcd.Voter && m.Health == etcd.Healthy && m.Pod.Ready:
			serving++
		}
	}
	if serving < 3 {
		return fmt.Errorf("only %d members serve", serving)
	}
	return nil
}
