package etcd

import (
	"cmp"
	"fmt"
	"slices"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// authEnabled is the reason while etcd's authentication keeps the operator from a change.
const authEnabled = "AuthEnabled"

// changesEtcd says that the step is a request to etcd that needs the role root once
// authentication is enabled (server/etcdserver, checkMembershipOperationAuth).
func changesEtcd(s lifecycle.Step) bool {
	switch s.Name {
	case AddLearner, AddVoter, Promote, RemoveMember, MoveLeader, UpdatePeerURL, RewriteMemberEntry, Disarm:
		return true
	}
	return false
}

// permitted is the first decision of the rules that can be carried out. While etcd refuses
// the operator's changes, repairs of what Kubernetes has go on, and nothing else.
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
	d := lifecycle.First(able...)
	if !refused.IsSet() || d.Outcome == lifecycle.OutcomeProceed && d.Step.Intent == lifecycle.IntentRepair {
		return d
	}
	return refused
}

// Unauthorized is the decision that etcd's authentication refuses the step to the user, which
// is empty if the operator shows no certificate.
func Unauthorized(want *etcdv1.EtcdCluster, user string, s lifecycle.Step) lifecycle.Decision {
	return lifecycle.Block(authEnabled, fmt.Sprintf("etcd's authentication is enabled, and the step %s needs the role root. %s", s, grant(want, user)))
}

// grant says how the operator gets its rights. A member knows a client without a password by
// the common name of its certificate.
func grant(want *etcdv1.EtcdCluster, user string) string {
	if user == "" {
		return "Governor has no client certificate by which etcd could know it. Members go on serving, and Kubernetes' probes tell how they are. " +
			"For this step disable it for a while: etcdctl auth disable. To keep it, move the data to an EtcdCluster with spec.tls.mode Managed."
	}
	return fmt.Sprintf("Governor is the user %q, the common name of the certificate in the Secret %s. Members go on serving. "+
		"As the user root, run: etcdctl user add %s --no-password && etcdctl user grant-role %s root",
		user, cmp.Or(ClientSecret(want), "for clients"), user, user)
}

// locked speaks while members do not even tell the operator who is a member. As long as
// Kubernetes calls all of them ready, nothing is known to be missing.
func locked(want desired, seen World) lifecycle.Decision {
	if !seen.Unauthorized || seen.Listed {
		return lifecycle.Decision{}
	}
	said := "etcd's authentication is enabled, and etcd does not tell Governor who is a member. " + grant(want.EtcdCluster, seen.User)
	known := recalled(want.EtcdCluster, seen)
	_, differs := known.find(func(m Member) bool { return voter(m) && (!known.serving(m) || want.mismatches(m)) })
	if to, err := target(want.EtcdCluster); !differs && known.count(voter) == int(want.Spec.Size) && err == nil && compare(to, present(want.EtcdCluster, seen)) == 0 {
		return lifecycle.Settled(authEnabled, said)
	}
	return lifecycle.Block(authEnabled, said)
}

// recalled is the world with the roles that the status remembers, for what is reported. No
// step follows from it.
func recalled(want *etcdv1.EtcdCluster, seen World) World {
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
			case string(Learner):
				m.Role = Learner
			}
		})
	}
	seen.Listed = true
	return seen
}
