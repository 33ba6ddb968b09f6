package etcd

import (
	"fmt"
	"strings"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Evidence is one of the [Abilities]: one line for the cluster, then one for the step's member
// and for each member that does not serve.
func (Planner) Evidence(_ *etcdv1.EtcdCluster, seen World, s lifecycle.Step) []string {
	all := []string{clusterEvidence(seen)}
	for _, m := range seen.Members {
		if m.Name == s.Target || listed(m) && !seen.serving(m) {
			all = append(all, memberEvidence(seen, m))
		}
	}
	return all
}

func clusterEvidence(seen World) string {
	if !seen.Listed {
		return fmt.Sprintf("No quorum answers; Kubernetes has %d members.", seen.count(inKube))
	}
	leader := "no member"
	if l, ok := seen.leader(); ok {
		leader = l.Name
	}
	return fmt.Sprintf("etcd lists %d voters and %d learners; %d voters serve and %s leads.",
		seen.count(voter), seen.count(learner), seen.count(seen.servingVoter), leader)
}

// memberEvidence describes a member in one line: its role in etcd, its own answer, its pod and
// its volume.
func memberEvidence(seen World, m Member) string {
	facts := []string{
		strings.ToLower(ternary(listed(m), string(m.Role), "not listed")),
		ternary(m.Health == Unknown, "does not answer", strings.ToLower(string(m.Health))),
		pod(m.Pod),
	}
	if m.Version != "" {
		facts = append(facts, "runs "+m.Version)
	}
	if m.Index > 0 {
		facts = append(facts, fmt.Sprintf("log at %d of %d", m.Index, seen.index()))
	}
	if dataLost(m) {
		facts = append(facts, "its data is lost")
	}
	if claimTerminating(m) {
		facts = append(facts, "its "+doom(m))
	}
	return m.Name + ": " + strings.Join(facts, ", ") + "."
}

func pod(p Pod) string {
	switch {
	case !p.Exists:
		return "no pod"
	case p.Leaving:
		return "pod is being deleted"
	case p.Trouble != lifecycle.PodProblemNone:
		return "pod in " + string(p.Trouble)
	case p.Ended:
		return "pod has terminated"
	}
	return ternary(p.Ready, "pod ready", "pod not ready")
}

func ternary(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
