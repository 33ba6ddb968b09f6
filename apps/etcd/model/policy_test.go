package model_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// thaw is when the freeze ends, after the fault ticks of every run: until then users freeze and
// unfreeze clusters at random.
var thaw = time.Unix(1_700_000_000+150, 0)

// rulers are policies that select clusters by a label with the policy's name, which users set and
// remove: two calendars that are not always open together, a freeze, held repairs, and an approval.
func rulers() policy.Set {
	every := func(schedule string, minutes time.Duration) []v1alpha1.Window {
		return []v1alpha1.Window{{Schedule: schedule, Duration: metav1.Duration{Duration: minutes * time.Minute}}}
	}
	var all []v1alpha1.OperationPolicy
	for name, spec := range map[string]v1alpha1.OperationPolicySpec{
		"halves": {Windows: every("*/2 * * * *", 1)},
		"thirds": {Windows: every("*/3 * * * *", 2)},
		"freeze": {Freeze: &v1alpha1.Freeze{Reason: "sale", Until: new(metav1.NewTime(thaw))}},
		"strict": {Windows: every("*/2 * * * *", 1), RepairPolicy: v1alpha1.RepairPolicyHold},
		"word":   {Approval: &v1alpha1.ApprovalRule{Classes: []v1alpha1.StepClass{"Disruptive", "Destructive", "Irreversible"}}},
	} {
		spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}}
		all = append(all, v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	}
	return policy.NewSet(all)
}

// approved: a user approves the next step, and withdraws the approval, every forty seconds.
func approved(now time.Time) bool { return now.Unix()/40%2 == 0 }

// ask is the policies' verdict on a step.
func ask(all policy.Set, want *etcdv1.EtcdCluster, s lifecycle.Step, now time.Time) []lifecycle.Refusal {
	about := policy.Object{Kind: "EtcdCluster", Name: want.Name, Labels: want.Labels}
	permit := func() (p policy.ApprovalCheck) {
		if approved(now) {
			p.Approval = &history.Approval{Name: "a"}
		}
		return p
	}
	return all.Selecting(about).Judge(policy.Question{Object: about, Step: s, Now: now, Permit: permit}).Refusals
}

// forbidden is the rule that the step violates, by an independent calendar; empty if none.
func forbidden(want *etcdv1.EtcdCluster, s lifecycle.Step, now time.Time) string {
	is := func(policy string) bool { return want.Labels[policy] == "yes" }
	wish := s.Intent != lifecycle.IntentRepair
	switch {
	case s.Class == lifecycle.ClassRoutine:
		return ""
	case now.Minute()%2 != 0 && (is("halves") && wish || is("strict")):
		return "outside of the window of every second minute"
	case now.Minute()%3 == 2 && is("thirds") && wish:
		return "outside of the windows of every three minutes"
	case now.Before(thaw) && is("freeze") && wish:
		return "in the freeze"
	case !approved(now) && is("word") && wish:
		return "without anybody's word"
	}
	return ""
}

// conscience records forbidden changes of the cluster.
type conscience struct {
	sim.Model[*etcdv1.EtcdCluster, etcd.World]
	now  time.Time
	sins []error
}

func (c *conscience) Observe(now time.Time) etcd.World {
	c.now = now
	return c.Model.Observe(now)
}

func (c *conscience) Act(want *etcdv1.EtcdCluster, seen etcd.World, s lifecycle.Step, fx *sim.Effects) error {
	if sin := forbidden(want, s, c.now); sin != "" {
		c.sins = append(c.sins, errors.New(s.String()+" "+sin+", at "+c.now.String()))
	}
	return c.Model.Act(want, seen, s, fx)
}

// Mend implements sim.Mendable.
func (c *conscience) Mend() {
	if m, ok := c.Model.(sim.Mendable); ok {
		m.Mend()
	}
}

// Safe implements sim.Truthful.
func (c *conscience) Safe() error {
	return errors.Join(append(c.sins, c.Model.(sim.Truthful).Safe())...)
}

// ruled is a run in which users set and remove policies as often as they edit the spec.
func ruled(all policy.Set) sim.Scenario[*etcdv1.EtcdCluster, etcd.World] {
	l := life()
	l.FaultTicks, l.ConvergeTicks = 100, 6000
	begin := l.Begin
	toggle := func(want *etcdv1.EtcdCluster, rng *rand.Rand) {
		name := all[rng.IntN(len(all))].Name
		if want.Labels[name] == "" {
			want.Labels[name] = "yes"
		} else {
			delete(want.Labels, name)
		}
	}
	l.Begin = func(rng *rand.Rand) (*etcdv1.EtcdCluster, sim.Model[*etcdv1.EtcdCluster, etcd.World]) {
		c, m := begin(rng)
		c.Labels = map[string]string{}
		for range 3 {
			toggle(c, rng)
		}
		return c, &conscience{Model: m}
	}
	l.Edit = func(want *etcdv1.EtcdCluster, rng *rand.Rand) {
		edit(want, rng)
		toggle(want, rng)
	}
	return l
}

// TestScenariosUnderPolicies: with any changes of policies, no held step runs, no data is lost, and all
// changes are done once the policies permit them.
func TestScenariosUnderPolicies(t *testing.T) {
	all := rulers()
	l := ruled(all)
	var held atomic.Int64
	l.Hold = func(want *etcdv1.EtcdCluster, s lifecycle.Step, now time.Time) []lifecycle.Refusal {
		refusals := ask(all, want, s, now)
		held.Add(int64(len(refusals)))
		return refusals
	}
	count := 1000
	if testing.Short() {
		count = 100
	}
	sim.RunSeeds(t, l, count)
	if held.Load() == 0 {
		t.Error("no step was held in any life")
	}
}

// TestBrokenPoliciesAreSeen: these runs detect a gate that does not hold, or never opens.
func TestBrokenPoliciesAreSeen(t *testing.T) {
	all := rulers()
	for name, c := range map[string]struct {
		reason string
		hold   func(want *etcdv1.EtcdCluster, s lifecycle.Step, now time.Time) []lifecycle.Refusal
		want   string
	}{
		"Ajar": {"a window that closes ten seconds late lets steps pass", func(want *etcdv1.EtcdCluster, s lifecycle.Step, now time.Time) []lifecycle.Refusal {
			return ask(all, want, s, now.Add(-10*time.Second))
		}, "outside of the window"},
		"Repairs": {"a repair that passes although it is held too", func(want *etcdv1.EtcdCluster, s lifecycle.Step, now time.Time) []lifecycle.Refusal {
			if s.Intent == lifecycle.IntentRepair {
				return nil
			}
			return ask(all, want, s, now)
		}, "outside of the window"},
		"Shut": {"a freeze that never ends leaves things undone", func(want *etcdv1.EtcdCluster, s lifecycle.Step, now time.Time) []lifecycle.Refusal {
			if now.After(thaw) {
				now = thaw.Add(-time.Second)
			}
			return ask(all, want, s, now)
		}, "did not converge"},
	} {
		t.Run(name, func(t *testing.T) {
			l := ruled(all)
			l.Hold, l.ConvergeTicks = c.hold, 1000
			for seed := uint64(1); seed <= 200; seed++ {
				if err := sim.Run(l, seed).Err; err != nil && strings.Contains(err.Error(), c.want) {
					return
				}
			}
			t.Errorf("%s, and 200 lives did not show it", c.reason)
		})
	}
}
