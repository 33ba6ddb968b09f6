package memcached_test

import (
	"fmt"
	"testing"
	"time"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/plannertest"
)

// needsUser are the reasons that need a user.
var needsUser = map[string]bool{
	"QuotaExceeded": true, "PodsRefused": true, "ImagePullBackOff": true, "ContainerCannotStart": true,
	"CrashLoopBackOff": true, "RolloutStuck": true, "Unschedulable": true,
}

// The test covers up to two pods in any state, any counts of the Deployment, and every
// size.
func TestEverySmallWorldConverges(t *testing.T) {
	long := plannertest.TestTime.Add(-time.Hour)
	states := []memcached.Pod{
		{Ready: true}, {}, {Terminating: true}, {Ready: true, Terminating: true}, {Problem: lifecycle.PodProblemImagePullBackOff},
		{Problem: lifecycle.PodProblemUnschedulable, Since: plannertest.TestTime}, {Problem: lifecycle.PodProblemUnschedulable, Since: long}, {Problem: lifecycle.PodProblemCrashLoopBackOff},
	}
	subject := plannertest.Subject[*cachev1.Memcached, memcached.World]{
		Planner: lifecycle.Strict[*cachev1.Memcached, memcached.World](memcached.Planner{}, memcached.Steps()),
		May: func(_ *cachev1.Memcached, _ memcached.World, d lifecycle.Decision) bool {
			return d.Outcome == lifecycle.OutcomeBlocked && needsUser[d.Reason]
		},
		Kept: func(want *cachev1.Memcached, seen memcached.World) error {
			if seen.Rollout.Total != want.Spec.Size || len(seen.Pods) < int(want.Spec.Size) {
				return fmt.Errorf("the Deployment counts %d pods, and %d exist", seen.Rollout.Total, len(seen.Pods))
			}
			return nil
		},
	}
	plannertest.Worlds(t, subject, func(yield func(*cachev1.Memcached, memcached.World) bool) {
		for pods := range plannertest.Bags(2, states...) {
			for size := range int32(4) {
				for updated := range int32(4) {
					want := &cachev1.Memcached{}
					want.Name, want.Spec.Size, want.Spec.ContainerPort = "m", size, 11211
					for _, refused := range []string{"", "exceeded quota: pods"} {
						r := memcached.Rollout{Current: updated%2 == 0, Updated: updated, Total: int32(len(pods)), Refused: refused}
						if !yield(want, memcached.World{Rollout: r, Pods: named(pods)}) {
							return
						}
					}
				}
			}
		}
	})
}

func named(pods []memcached.Pod) []memcached.Pod {
	all := make([]memcached.Pod, len(pods))
	for i, p := range pods {
		p.Name = fmt.Sprintf("m-%d", i)
		all[i] = p
	}
	return all
}
