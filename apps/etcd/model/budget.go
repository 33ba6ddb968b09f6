package model

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// budget is the PodDisruptionBudget, which the API server asks before each eviction.
type budget struct {
	exists      bool
	least       int  // pods that must stay available
	exposedOnly bool // it selects only pods that receive client traffic
	alwaysAllow bool // it does not protect pods that are not ready
}

func budgetOf(b *policyv1.PodDisruptionBudget) budget {
	_, exposedOnly := b.Spec.Selector.MatchLabels[etcd.LabelExposed]
	unready := b.Spec.UnhealthyPodEvictionPolicy
	return budget{true, b.Spec.MinAvailable.IntValue(), exposedOnly, unready != nil && *unready == policyv1.AlwaysAllow}
}

func (m *Model) provideBudget(resources []lifecycle.Object, fx *sim.Effects) error {
	var wanted budget
	for _, obj := range resources {
		if b, ok := obj.(*policyv1.PodDisruptionBudget); ok {
			wanted = budgetOf(b)
		}
	}
	if reflect.DeepEqual(wanted, m.budget) {
		return nil
	}
	return fx.Do(fmt.Sprintf("apply the disruption budget: %d stay", wanted.least), func() error { m.budget = wanted; return nil })
}

func (b budget) selects(p *pod) bool {
	return b.exists && !p.stripped && (!b.exposedOnly || p.exposure == etcd.Exposed)
}

// healthy is how many selected pods are ready. Pods that are being deleted do not count
// (pkg/controller/disruption, countHealthyPods).
func (m *Model) healthy() (n int) {
	for name, p := range m.pods {
		if m.budget.selects(p) && !p.leaving && m.isReady(name) {
			n++
		}
	}
	return n
}

// isReady reports whether the pod is ready in the API.
func (m *Model) isReady(name string) bool {
	p := m.pods[name]
	return m.ready(name) && !p.sidecar && !p.blind
}

// evictable is the API server's decision about an eviction (pkg/registry/core/pod/storage,
// eviction.go).
func (m *Model) evictable(name string) bool {
	p := m.pods[name]
	switch ready := m.isReady(name); {
	case p.leaving || p.ended || p.nodeless > 0 || !m.budget.selects(p):
		return true
	case !ready && (m.budget.alwaysAllow || m.healthy() >= m.budget.least && m.budget.least > 0):
		return true
	}
	return m.healthy() > m.budget.least
}

// evict deletes the pod as a drain does, which asks the budget. A pod whose data goes with it
// stays while its ConfigMap permits a start without data (see mayLoseData), and while the budget
// does not protect it: it follows the member list with the next reconcile.
func (m *Model) evict(name string) bool {
	p := m.pods[name]
	// No budget counts a pod that the end of a StatefulSet's deletion takes.
	protected := m.budget.selects(p) && m.budget.least >= m.quorum() && !m.holdsAny()
	if !m.evictable(name) || p.leaving || m.needsPod(name) && (m.mayStartEmpty(name) || !protected && !m.mayLoseData(name)) {
		return false
	}
	if n := m.voters(anyEntry); n > 2 && m.budget.selects(p) && m.budget.least == m.quorum() && m.connectedVoter(name) &&
		m.majority() && m.voters(m.connected)-1 < m.quorum() {
		m.violated("the budget lets a drain evict %s, which breaks the quorum", name)
	}
	p.leaving = true
	return true
}

// holdsAny reports that a finalizer keeps a StatefulSet that a user deleted.
func (m *Model) holdsAny() bool {
	return slices.ContainsFunc(keys(m.held), func(name string) bool { return m.held[name] > 0 })
}

func (m *Model) connectedVoter(name string) bool {
	e, ok := m.entry(name)
	return ok && e.role == etcd.Voter && m.connected(*e)
}

func (m *Model) evictPod(name string, _ *rand.Rand) string {
	if !m.evict(name) {
		return ""
	}
	return "a drain evicts the pod of " + name
}

// blindNodes keeps all nodes from reporting, as an outage of the API server does: Kubernetes then
// marks their pods as not ready, and they serve. A drain may go on after the outage.
func (m *Model) blindNodes(name string, rng *rand.Rand) string {
	ticks := 1 + rng.IntN(40)
	for _, name := range keys(m.pods) {
		m.pods[name].blind, m.pods[name].illTicks = true, ticks
	}
	said := fmt.Sprintf("all pods serve, and are not ready in the API for %d ticks", ticks)
	if rng.IntN(2) == 0 {
		said += "; " + m.drain(name, rng)
	}
	return said
}

// drain evicts all pods, as a drain of all nodes would, as long as the budget permits it.
func (m *Model) drain(string, *rand.Rand) string {
	said := ""
	for _, name := range keys(m.pods) {
		if m.evict(name) {
			said += " " + name
		}
	}
	if said == "" {
		return ""
	}
	return "a drain of all nodes evicts" + said
}
