package etcd_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// TestDisruptionBudgetProtectsUnreadyPods covers an outage of the API server: serving pods
// are then marked not ready, and a drain must not break the quorum.
func TestDisruptionBudgetProtectsUnreadyPods(t *testing.T) {
	cases := map[string]struct {
		size   int32
		medium etcdv1.Medium
		least  int
	}{
		"Three":          {3, etcdv1.MediumPersistent, 2},
		"Five":           {5, etcdv1.MediumPersistent, 3},
		"Two":            {2, etcdv1.MediumPersistent, 1},
		"One":            {1, etcdv1.MediumPersistent, 0},
		"ThreeInMemory":  {3, etcdv1.MediumMemory, 2},
		"TwoInMemory":    {2, etcdv1.MediumMemory, 2},
		"OneOnEphemeral": {1, etcdv1.MediumEphemeral, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := wanted(c.size)
			want.Spec.Storage.Medium = c.medium
			spec := budget(t, want, serving(int(c.size)).World).Spec
			if got := *spec.UnhealthyPodEvictionPolicy; got != policyv1.IfHealthyBudget {
				t.Errorf("the policy for pods that are not ready is %s", got)
			}
			if got := spec.MinAvailable.IntValue(); got != c.least {
				t.Errorf("minAvailable is %d, want %d", got, c.least)
			}
		})
	}
}

func budget(t *testing.T, want *etcdv1.EtcdCluster, seen etcd.World) *policyv1.PodDisruptionBudget {
	t.Helper()
	objects, err := etcd.Planner{}.Resources(want, seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		if b, ok := obj.(*policyv1.PodDisruptionBudget); ok {
			return b
		}
	}
	t.Fatal("there is no disruption budget")
	return nil
}

// TestBudgetOfAClusterThatGrows: its members can restart before others join, and the quorum that it has is kept.
func TestBudgetOfAClusterThatGrows(t *testing.T) {
	for name, c := range map[string]struct {
		voters int
		size   int32
		least  int
	}{
		"OneOfThree":  {1, 3, 0},
		"TwoOfThree":  {2, 3, 2},
		"ThreeOfFive": {3, 5, 2},
		"FourOfFive":  {4, 5, 3},
		"FiveOfThree": {5, 3, 3},
		"TwoOfOne":    {2, 1, 1},
		"NotFormed":   {0, 3, 2},
	} {
		if got := budget(t, wanted(c.size), serving(c.voters).World).Spec.MinAvailable.IntValue(); got != c.least {
			t.Errorf("%s: minAvailable is %d, want %d", name, got, c.least)
		}
	}
}
