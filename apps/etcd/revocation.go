package etcd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// revokedReason is the reason of all steps and conditions of spec.tls.revokeBefore.
	revokedReason = "AuthorityRevoked"
	// trustAfterRevocation is the Trust of predicted worlds without any revoked authority.
	trustAfterRevocation = "withdrawn"
)

func revokes(want *etcdv1.EtcdCluster) bool {
	return managed(want) && want.Spec.TLS.RevokeBefore != nil
}

// revocation is the revocation part of an authority's certificate request: the declaration, and
// the members' progress. Progress is reported only while it is needed, so that a member that
// restarts later changes no Secret.
func revocation(want *etcdv1.EtcdCluster, seen World, authority string) *lifecycle.Revocation {
	if !revokes(want) {
		return nil
	}
	r := &lifecycle.Revocation{Before: *want.Spec.TLS.RevokeBefore.DeepCopy()}
	switch seen.Revocation {
	case lifecycle.RevocationDistributing, lifecycle.RevocationReplacing:
		if n, all := seen.running(seen.Trust); n == all {
			r.Trusted = seen.Bundles[authority]
		}
	case lifecycle.RevocationScheduled, lifecycle.RevocationComplete:
	}
	if n, all := seen.renewed(); seen.Revocation == lifecycle.RevocationReplacing {
		r.Shown = n == all
	}
	return r
}

// revocationSeen is the phase of the slowest authority, and the digest of each bundle.
func revocationSeen(want *etcdv1.EtcdCluster, authorities []*corev1.Secret) (lifecycle.RevocationPhase, map[string]string) {
	if !revokes(want) {
		return "", nil
	}
	order := []lifecycle.RevocationPhase{
		"", lifecycle.RevocationScheduled, lifecycle.RevocationDistributing, lifecycle.RevocationReplacing, lifecycle.RevocationComplete,
	}
	least, bundles := len(order)-1, map[string]string{}
	for _, s := range authorities {
		least = min(least, max(0, slices.Index(order, lifecycle.RevocationOf(s, want.Spec.TLS.RevokeBefore))))
		bundles[s.Name] = lifecycle.BundleDigest(s.Data[lifecycle.KeyAuthorities])
	}
	return order[least], bundles
}

// running counts the members that read these authorities at their start.
func (w World) running(trust string) (n, all int) {
	return w.share(func(m Member) bool {
		_, runs, _ := strings.Cut(m.Pod.Revision, ".")
		return trust != "" && runs == trust
	})
}

// renewed counts the members that present the certificates of their Secrets.
func (w World) renewed() (n, all int) { return w.share(func(m Member) bool { return m.Renewed }) }

// share counts the members with a pod that satisfy the predicate, of all members that are listed
// or may return. Of a removed member whose volume is kept, nothing trusts an authority.
func (w World) share(is func(Member) bool) (n, all int) {
	for _, m := range w.Members {
		if ours(m) && (listed(m) || inKube(m)) && !KeptVolume(w, m) {
			all++
			if m.Pod.Exists && !m.Pod.Leaving && is(m) {
				n++
			}
		}
	}
	return n, all
}

// revocationProgress waits for the members' progress. The next authority signs once all members
// trust it, and the revoked one is removed once no member presents its certificates. The
// restarts are those of any change of authorities.
func revocationProgress(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	if !revokes(want) {
		return lifecycle.Decision{}
	}
	cluster := Member{Name: want.Name}
	switch seen.Revocation {
	case lifecycle.RevocationScheduled, lifecycle.RevocationComplete:
		return lifecycle.Decision{}
	case lifecycle.RevocationReplacing:
		return await(AuthorityDropped, cluster, time.Time{}, revokedReason, "%s", replacing(seen))
	}
	return await(AuthoritySigns, cluster, time.Time{}, revokedReason, "%s", distributing(seen))
}

func distributing(seen World) string {
	if seen.Revocation == "" {
		return "A new authority is being created; it signs certificates once all members trust it."
	}
	n, all := seen.running(seen.Trust)
	return fmt.Sprintf("%d of %d members trust the authority that replaces a revoked one; it signs certificates once all do.", n, all)
}

func replacing(seen World) string {
	n, all := seen.renewed()
	late := ""
	if m, ok := seen.find(func(m Member) bool { return ours(m) && listed(m) && !m.Renewed }); ok {
		late = fmt.Sprintf(" %s does not present its new certificate yet: the kubelet of the node %s updates it within about a minute.",
			m.Name, cmp.Or(m.Pod.Node, "unknown"))
	}
	return fmt.Sprintf("%d of %d members present certificates of the new authority; they trust the revoked one until all do.%s", n, all, late)
}

// revoked is the world after a wait: all certificates are signed again, or no ca.crt contains
// the revoked authority.
func revoked(seen World, s lifecycle.Step) World {
	if s.Name == AuthoritySigns {
		seen.Revocation = lifecycle.RevocationReplacing
		return seen
	}
	seen.Revocation, seen.Trust = lifecycle.RevocationComplete, trustAfterRevocation
	return seen
}

// revocationCondition is the condition during and after a revocation.
func revocationCondition(want *etcdv1.EtcdCluster, seen World) []lifecycle.Condition {
	if !revokes(want) {
		return nil
	}
	before := want.Spec.TLS.RevokeBefore.UTC().Format(time.RFC3339)
	c := lifecycle.Condition{Type: revokedReason, Status: metav1.ConditionFalse}
	n, all := seen.running(seen.Trust)
	switch {
	case seen.Revocation == lifecycle.RevocationScheduled:
		c.Reason, c.Message = "Scheduled", "Authorities created before "+before+" are revoked at that time."
	case seen.Revocation == lifecycle.RevocationReplacing:
		c.Reason, c.Message = "ReplacingCertificates", replacing(seen)
	case seen.Revocation != lifecycle.RevocationComplete:
		c.Reason, c.Message = "DistributingTrust", distributing(seen)
	case n < all:
		c.Reason, c.Message = "RemovingTrust", fmt.Sprintf("%d of %d members have restarted without the revoked authority.", n, all)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, "Revoked"
		c.Message = "No member trusts an authority created before " + before + "."
	}
	return []lifecycle.Condition{c}
}
