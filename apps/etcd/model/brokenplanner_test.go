package model_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// without is the planner without one rule.
type without struct {
	etcd.Planner
	reason string
}

func (p without) Next(want *etcdv1.EtcdCluster, seen etcd.World, now time.Time) lifecycle.Decision {
	d := p.Planner.Next(want, seen, now)
	if d.Reason == p.reason {
		return lifecycle.Settled("AsDeclared", "")
	}
	return d
}

// openDoors never disables a bootstrap ConfigMap.
type openDoors struct{ etcd.Planner }

func (p openDoors) Resources(want *etcdv1.EtcdCluster, seen etcd.World) ([]lifecycle.Object, error) {
	objects, err := p.Planner.Resources(want, seen)
	for _, obj := range objects {
		if c, ok := obj.(*corev1.ConfigMap); ok && etcd.BootstrapModeOf(c) == etcd.BootstrapDisabled {
			c.Data["bootstrap"] = string(etcd.BootstrapJoin)
		}
	}
	return objects, err
}

func (p openDoors) Next(want *etcdv1.EtcdCluster, seen etcd.World, now time.Time) lifecycle.Decision {
	for i := range seen.Members {
		seen.Members[i].Bootstrap = etcd.BootstrapDisabled // and assumes that they are disabled
	}
	return p.Planner.Next(want, seen, now)
}

// anyEviction lets drains evict pods that are not ready, although they may serve.
type anyEviction struct{ etcd.Planner }

func (p anyEviction) Resources(want *etcdv1.EtcdCluster, seen etcd.World) ([]lifecycle.Object, error) {
	objects, err := p.Planner.Resources(want, seen)
	for _, obj := range objects {
		if b, ok := obj.(*policyv1.PodDisruptionBudget); ok {
			b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
		}
	}
	return objects, err
}

func TestSimulatorDetectsBrokenPlanners(t *testing.T) {
	type spoil func(*sim.Scenario[*etcdv1.EtcdCluster, etcd.World])
	rule := func(reason string) spoil {
		return func(l *sim.Scenario[*etcdv1.EtcdCluster, etcd.World]) { l.Planner = without{reason: reason} }
	}
	cases := map[string]struct {
		reason string
		spoil  spoil
		want   string
	}{
		"OpenDoors":   {"a member without data must not come back", func(l *sim.Scenario[*etcdv1.EtcdCluster, etcd.World]) { l.Planner = openDoors{} }, "old identity"},
		"AnyEviction": {"a drain must not evict what may serve", func(l *sim.Scenario[*etcdv1.EtcdCluster, etcd.World]) { l.Planner = anyEviction{} }, "lets a drain evict"},
		"HalfRemoved": {"what etcd has removed must go from Kubernetes", rule("MemberRemoved"), "settled, but"},
		"HalfAdded":   {"what etcd has added must come to Kubernetes", rule("MemberAdded"), "settled, but"},
		"NoPromotion": {"a learner must get its vote", rule("LearnerCaughtUp"), "settled, but"},
		"NoRepair":    {"a dead member must be replaced", rule("MemberDead"), "settled, but"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := life()
			l.ConvergeTicks = 400
			c.spoil(&l)
			var errs []string
			for seed := uint64(1); seed <= 150; seed++ {
				if err := sim.Run(l, seed).Err; err != nil {
					errs = append(errs, err.Error())
				}
			}
			if !slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, c.want) }) {
				t.Errorf("%s, and 150 lives did not show it: %.300q", c.reason, errs)
			}
		})
	}
}
