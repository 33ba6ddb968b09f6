package etcd

import (
	"fmt"
	"strings"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// NextTemplate returns the step with the template that a member gets next; ok is false if every
// member has the current one. The driver runs a dry run of its pod, so that Governor takes no
// serving member for a pod that the API server rejects.
func NextTemplate(want *etcdv1.EtcdCluster, seen World) (s lifecycle.Step, ok bool) {
	if isDeleted(want) {
		return s, false
	}
	goal := computeDesired(want, seen)
	m, ok := followerFirst(seen, goal.isOutdated)
	if !ok { // the member list may be unknown, or a container of others fails
		m, ok = seen.find(func(m Member) bool { return ours(m) && (goal.mismatches(m) || m.Pod.OtherContainer != "") })
	}
	if !ok {
		return s, false
	}
	return restart(goal, m, goal.after(m), goal.difference(m), "%s needs another pod.", m.Name), true
}

// TemplateOf identifies the template of the pod that the step creates.
func TemplateOf(s lifecycle.Step) string {
	return strings.Join([]string{s.Args[ArgRevision], s.Args[ArgVersion], s.Args[ArgSnapshots]}, "/")
}

// refusedTemplate blocks if the API server rejects the pod that the step creates.
func refusedTemplate(want desired, seen World, s lifecycle.Step) lifecycle.Decision {
	if !seen.Template.Refuses(TemplateOf(s)) {
		return lifecycle.Decision{}
	}
	said := fmt.Sprintf("The API server rejects the next pod of a member: %s. No serving member restarts for it. "+
		"Correct the spec, or create what the API server names; Governor tries again.", seen.Template.Refusal)
	if changedSpec(want, seen, s) {
		return lifecycle.Fail("TemplateRefused", said)
	}
	return lifecycle.Block("TemplateRefused", said)
}

// unverifiedTemplate blocks a change while nothing answers whether the API server accepts its pods.
func unverifiedTemplate(seen World, s lifecycle.Step) lifecycle.Decision {
	if !seen.Template.IsUnknown(TemplateOf(s)) {
		return lifecycle.Decision{}
	}
	return lifecycle.Block("TemplateUnverified", fmt.Sprintf("Governor does not know whether the API server accepts the next pod of a member: %s. "+
		"No member restarts for the change until a dry run succeeds. Repair the webhook, or grant Governor the right to create pods.", seen.Template.Unknown))
}

// changedSpec reports that members lack the last change of the spec, and that none serves with it.
// An earlier spec would not help where only the authorities changed.
func changedSpec(want desired, seen World, s lifecycle.Step) bool {
	_, works := seen.find(func(o Member) bool {
		return seen.servingVoter(o) && ours(o) && o.Pod.Revision == s.Args[ArgRevision] && o.Pod.Version == s.Args[ArgVersion]
	})
	_, lacks := seen.find(func(o Member) bool {
		reason := want.difference(o)
		return want.isOutdated(o) && (reason == specChanged || reason == versionChanged)
	})
	return lacks && !works
}

// followerFirst returns a member that satisfies the predicate, the leader last.
func followerFirst(seen World, is func(Member) bool) (Member, bool) {
	if m, ok := seen.find(func(m Member) bool { return is(m) && !m.Leads }); ok {
		return m, true
	}
	return seen.find(is)
}
