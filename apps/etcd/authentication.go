package etcd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// authEnabled is the reason while etcd's authentication denies the operator a change.
const authEnabled = "AuthEnabled"

// changesEtcd reports whether the step is a request to etcd that needs the role root once
// authentication is enabled (server/etcdserver, checkMembershipOperationAuth).
func changesEtcd(s lifecycle.Step) bool {
	switch s.Name {
	case AddLearner, AddVoter, Promote, RemoveMember, MoveLeader, UpdatePeerURL, RewriteMemberEntry, Disarm:
		return true
	}
	return false
}

// permitted returns the first decision of the rules that can be carried out. While etcd denies
// the operator's changes, only repairs of Kubernetes objects continue.
func permitted(want *etcdv1.EtcdCluster, seen World, rules ...lifecycle.Decision) lifecycle.Decision {
	if !seen.Unauthorized {
		return lifecycle.First(rules...)
	}
	var refused lifecycle.Decision
	var able []lifecycle.Decision
	for _, d := range rules {
		switch {
		case d.Outcome != lifecycle.OutcomeProceed || !changesEtcd(d.Step):
			able = append(able, d)
		case !refused.IsSet() && !slices.ContainsFunc(able, lifecycle.Decision.IsSet):
			refused = Unauthorized(want, seen.User, d.Step)
		}
	}
	if refused.IsSet() {
		able = append(upToChange(able), refused)
	}
	return lifecycle.First(able...)
}

// upToChange are the repairs that come before anything else.
func upToChange(rules []lifecycle.Decision) []lifecycle.Decision {
	first := slices.IndexFunc(rules, func(d lifecycle.Decision) bool {
		return d.IsSet() && (d.Outcome != lifecycle.OutcomeProceed || !d.IsRepair())
	})
	if first < 0 {
		return rules
	}
	return rules[:first]
}

// Unauthorized returns the decision for a step that etcd's authentication denies to the user.
// The user is empty if the operator presents no certificate.
func Unauthorized(want *etcdv1.EtcdCluster, user string, s lifecycle.Step) lifecycle.Decision {
	return lifecycle.Block(authEnabled, fmt.Sprintf("etcd's authentication is enabled, and the step %s needs the role root. %s", s, grantInstructions(want, user)))
}

// grantInstructions describes how to grant the operator its rights. A member identifies a client
// without a password by the common name of the client's certificate.
func grantInstructions(want *etcdv1.EtcdCluster, user string) string {
	if user == "" {
		return "Governor has no client certificate to authenticate with. Members continue to serve, and Governor relies on the kubelet's probes. " +
			"To permit this step, disable authentication for a while: etcdctl auth disable. To keep authentication, move the data to an EtcdCluster with spec.tls.mode Managed."
	}
	return fmt.Sprintf("Governor is the user %q, the common name of the certificate in the Secret %s. Members continue to serve. "+
		"As the user root, run: etcdctl user add %s --no-password && etcdctl user grant-role %s root",
		user, cmp.Or(ClientSecret(want), "for clients"), user, user)
}

// memberListDenied decides while members deny the operator the member list. As long as
// Kubernetes reports all of them ready, no member is known to be missing.
func memberListDenied(want desired, seen World) lifecycle.Decision {
	if !seen.Unauthorized || seen.Listed {
		return lifecycle.Decision{}
	}
	said := "etcd's authentication is enabled, and etcd denies Governor the member list. " + grantInstructions(want.EtcdCluster, seen.User)
	known := withRememberedRoles(want.EtcdCluster, seen)
	_, differs := known.find(func(m Member) bool { return voter(m) && want.mismatches(m) })
	if due := dueRepairs(known); due != "" {
		differs, said = true, said+" Until then Governor cannot repair "+due+"."
	}
	if to, err := target(want.EtcdCluster); !differs && known.count(voter) == int(want.Spec.Size) && err == nil && compare(to, present(want.EtcdCluster, seen)) == 0 {
		return lifecycle.Settled(authEnabled, said)
	}
	return lifecycle.Block(authEnabled, said)
}

// dueRepairs names the voters that Governor would repair if it might.
func dueRepairs(known World) string {
	var all []string
	for _, m := range known.Members {
		switch {
		case !voter(m):
		case claimTerminating(m):
			all = append(all, m.Name+" (its "+doom(m)+")")
		case !known.serving(m):
			all = append(all, m.Name+" (it does not serve)")
		}
	}
	return strings.Join(all, ", ")
}

// withRememberedRoles returns the world with the roles recorded in the status. It serves reports
// only; no step follows from it.
func withRememberedRoles(want *etcdv1.EtcdCluster, seen World) World {
	if !seen.Unauthorized || seen.Listed {
		return seen
	}
	for _, old := range want.Status.Members {
		if _, ok := seen.named(old.Name); !ok {
			continue
		}
		seen = seen.change(old.Name, func(m *Member) {
			switch old.Role {
			case roleLeader, roleFollower:
				m.Role, m.Joined = Voter, true
			case etcdv1.MemberRoleLearner:
				m.Role = Learner
			}
		})
	}
	seen.Listed = true
	return seen
}
