package etcd

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// AnnotationRemoving is on a claim whose member Governor removes from etcd's list, from before the
// removal. Its value names the member's ID and the claim's UID: see [RemovalMark]. Governor deletes no
// other claim: the member list alone does not show that the data is no longer needed, e.g. after a
// backup restored the claim, or after etcd was started with --force-new-cluster.
const AnnotationRemoving = "governor.dev/removing"

// RemovalMark is the value of [AnnotationRemoving]. A copy of the claim has another UID.
func RemovalMark(id, claim string) string { return id + "." + claim }

// halfRemoved finishes a removal begun by Governor, by etcdctl, or interrupted by a crash. The volume
// goes only if Governor removed the member.
//
// It is as urgent as a repair. Where enough members are left, a change of the spec caused it. While
// too few voters serve, it waits: the gate KeepsQuorum would hold it, and with it the repairs after it.
func halfRemoved(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return ours(m) && !listed(m) && want.leftovers(m) })
	if !ok || !seen.Listed || seen.missing() > 0 {
		return lifecycle.Decision{}
	}
	s := deleteMember(m, "MemberRemoved", "%s is no longer in etcd's member list; Governor deletes its objects in Kubernetes.", m.Name)
	switch {
	case m.Volume.Earlier: // its pod has the volume of another claim
		s = s.WithArgs(deleteArgs{etcdv1.RetentionRetain})
	case keepsClaim(want.EtcdCluster, m):
		s = class(s, lifecycle.ClassDisruptive).WithArgs(deleteArgs{etcdv1.RetentionRetain})
		s.Message = fmt.Sprintf("%s is not in etcd's member list, and Governor did not remove it; Governor deletes its StatefulSet and keeps its volume.", m.Name)
	}
	s = repair(s)
	if seen.count(ourListed) >= int(want.Spec.Size) {
		s.Cause = lifecycle.CauseSpecChange
	}
	return lifecycle.Proceed(s)
}

// leftovers reports whether the removed member has objects that Governor deletes, and that Kubernetes
// does not delete yet.
func (g desired) leftovers(m Member) bool {
	return m.Set.Exists || m.Pod.Exists && !m.Pod.Leaving || m.Volume.Exists && !m.Volume.Terminating && !keepsClaim(g.EtcdCluster, m)
}

// keepsClaim reports whether the claim of an unlisted member stays, because Governor did not remove the
// member.
func keepsClaim(want *etcdv1.EtcdCluster, m Member) bool {
	return !Volatile(want) && m.Volume.Exists && !m.Volume.Removing
}

// KeptVolume reports that only a volume is left of the member, which is not in etcd's list, and perhaps a pod that is
// being deleted. Governor keeps and reports it.
func KeptVolume(seen World, m Member) bool {
	return seen.Listed && ours(m) && !listed(m) && !m.Set.Exists && (!m.Pod.Exists || m.Pod.Leaving) && m.Volume.Exists && !m.Volume.Removing
}

// abandonedRemoval removes the mark of a removal that etcd refused, once the member serves and no repair
// removes it any longer. A doomed claim needs no mark.
func abandonedRemoval(seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return ourListed(m) && m.Volume.Removing && !m.Volume.doomed() && seen.serving(m)
	})
	if !ok {
		return lifecycle.Decision{}
	}
	return lifecycle.Proceed(repair(step(KeepVolume, m, "RemovalAbandoned", "%s serves and stays; its volume is no longer to be deleted.", m.Name)))
}

// expelledMembers blocks all changes while the list lacks a majority of the last known voters, which
// Governor did not remove: etcd was started with --force-new-cluster, or a user removed them. Their
// data may be newer.
func expelledMembers(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	gone := expelled(want, seen)
	if len(gone) == 0 {
		return lifecycle.Decision{}
	}
	var left, claims, pods []string
	for _, m := range seen.Members {
		if ourListed(m) {
			left, claims, pods = append(left, m.Name), append(claims, ClaimName(want, m.Name)), append(pods, m.Name+"-0")
		}
	}
	return lifecycle.Block("MembersExpelled", fmt.Sprintf(
		"A majority of the members left etcd's member list at once, e.g. by --force-new-cluster, and Governor did not remove them: %s. "+
			"Their data may be newer than that of the members in the list: %s. Governor changes nothing. "+
			"To go back to the data of %s: kubectl -n %s delete statefulset/%s pvc/%s. "+
			"To continue with the members in the list: kubectl -n %s delete pod %s, and then kubectl -n %s delete statefulset %s; the volumes stay.",
		strings.Join(gone, ", "), strings.Join(left, ", "),
		strings.Join(gone, ", "), want.Namespace, strings.Join(left, " statefulset/"), strings.Join(claims, " pvc/"),
		want.Namespace, strings.Join(pods, " "), want.Namespace, strings.Join(gone, " ")))
}

// expelled are the last known voters that are no longer in the list, if they are a majority. It is
// empty once a user has deleted the StatefulSets of enough of them.
func expelled(want *etcdv1.EtcdCluster, seen World) []string {
	voters := 0
	var gone []string
	for _, old := range want.Status.Members {
		if old.Role != roleLeader && old.Role != roleFollower {
			continue
		}
		voters++
		if m, _ := seen.named(old.Name); ours(m) && !listed(m) && m.Set.Exists && !m.Volume.Removing {
			gone = append(gone, old.Name)
		}
	}
	if !seen.Listed || len(gone) <= voters/2 {
		return nil
	}
	return gone
}

// keptVolumes is the condition while there are volumes of members that are not in etcd's list.
func keptVolumes(want *etcdv1.EtcdCluster, seen World) []lifecycle.Condition {
	var claims []string
	for _, m := range seen.Members {
		if KeptVolume(seen, m) {
			claims = append(claims, ClaimName(want, m.Name))
		}
	}
	if len(claims) == 0 {
		return nil
	}
	slices.Sort(claims)
	return []lifecycle.Condition{{
		Type: "VolumesKept", Status: metav1.ConditionTrue, Reason: "NotRemovedByGovernor", Message: fmt.Sprintf(
			"Volumes of members that are not in etcd's member list are kept: Governor did not remove these members, or did not create the claims, or may not delete them. "+
				"To delete their data: kubectl -n %s delete pvc %s", want.Namespace, strings.Join(claims, " ")),
	}}
}
