package etcd

import (
	"fmt"
	"strings"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// volumeDeleted is the reason of the steps that replace a member whose volume lasts only as long
// as its pod.
const volumeDeleted = "VolumeDeleted"

// terminatingClaim removes a member whose claim is being deleted, once there is one more member
// than wanted. tooFewMembers has added that one, and it votes: a learner whose promotion is refused
// does not count. The leader is removed last. While all claims are being deleted, tooFewMembers adds
// a member first, also during a reduction of the size.
func terminatingClaim(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return voter(m) && claimTerminating(m) && !m.Leads })
	if !ok {
		m, ok = seen.find(func(m Member) bool { return voter(m) && claimTerminating(m) })
	}
	if !ok || seen.count(ourVoter) <= int(want.Spec.Size) || allTerminating(seen) {
		return lifecycle.Decision{}
	}
	if successor, able := newLeader(seen, m); m.Leads && able && present(want.EtcdCluster, seen).can(leaderMoves) {
		return lifecycle.Proceed(repair(moveLeader(m, successor, volumeDeleted,
			"%s leads, and its %s; the leadership moves to %s.", m.Name, doom(m), successor.Name)))
	}
	return lifecycle.Proceed(repair(remove(m, volumeDeleted,
		"The replacement of %s serves: its %s, and its data goes with its pod.", m.Name, doom(m))))
}

// editedSet applies a StatefulSet again that differs from its declaration. That restarts no pod,
// because the update strategy is OnDelete.
func editedSet(want desired, seen World) lifecycle.Decision {
	edited := func(m Member) bool { return ours(m) && m.Set.Edited != "" && !obstructed(m) }
	return seen.each(edited, func(m Member) lifecycle.Step { return restoreSet(want, m, m.Set.Edited) })
}

func restoreSet(want desired, m Member, fields string) lifecycle.Step {
	s := step(RestoreStatefulSet, m, "StatefulSetEdited", "The StatefulSet %s is not as declared (%s); Governor applies it again, and no pod restarts.", m.Name, fields)
	return revert(s).WithArgs(want.template(m, want.version(m)))
}

// harmlessEdits applies a StatefulSet again if neither service nor data depends on the fields that
// were changed. With driftPolicy Report the engine reports each of them instead.
func harmlessEdits(want desired, seen World) lifecycle.Decision {
	var all []lifecycle.Decision
	for _, m := range seen.Members {
		if !ours(m) || len(m.Set.Harmless) == 0 || obstructed(m) {
			continue
		}
		d := lifecycle.Proceed(restoreSet(want, m, strings.Join(m.Set.Harmless, ", ")))
		d.Drift = &lifecycle.Drift{Kind: "StatefulSet", Name: m.Name, Fields: m.Set.Harmless}
		all = append(all, d)
	}
	return lifecycle.Any(all...)
}

// podWithoutLabels labels a pod again. Its StatefulSet has released it, and cannot create
// another of the same name.
func podWithoutLabels(seen World) lifecycle.Decision {
	stripped := func(m Member) bool { return ours(m) && m.Pod.Stripped && !m.Pod.Leaving && m.Set.Exists }
	return seen.each(stripped, func(m Member) lifecycle.Step {
		return revert(step(LabelPod, m, "LabelsMissing", "The pod of %s lacks labels by which it is selected; Governor sets them again.", m.Name))
	})
}

// claimWithoutLabels labels a claim again. Without its labels, a later observation or a user
// could take it for the claim of another member or of an earlier cluster.
func claimWithoutLabels(seen World) lifecycle.Decision {
	return seen.each(func(m Member) bool { return ours(m) && m.Volume.Stripped && !m.Volume.OfUser() }, func(m Member) lifecycle.Step {
		return revert(step(LabelVolume, m, "LabelsMissing", "The PersistentVolumeClaim of %s lacks labels of its cluster; Governor sets them again.", m.Name))
	})
}

// movedURL restores the peer URL of a member whose URL in etcd's list was changed, e.g. by
// etcdctl member update. The member's ID identifies it, its URL does not. An unmanaged member
// with that URL is removed first.
func movedURL(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		return ourListed(m) && m.ID != 0 && m.PeerURL != "" && m.PeerURL != PeerURL(want.EtcdCluster, m.Name)
	})
	if !ok || !seen.Listed {
		return lifecycle.Decision{}
	}
	url := PeerURL(want.EtcdCluster, m.Name)
	if _, taken := seen.find(func(o Member) bool { return o.PeerURL == url }); taken {
		return lifecycle.Decision{}
	}
	s := step(UpdatePeerURL, m, "PeerURLChanged", "etcd's member list has the peer URL %s for %s; Governor restores %s.", m.PeerURL, m.Name, url)
	return lifecycle.Proceed(revert(s).WithArgs(entryArgs{MemberID(m.ID), url}))
}

// otherCluster blocks all changes while the members serve a cluster ID other than the recorded
// one, until a person accepts it.
func otherCluster(want *etcdv1.EtcdCluster, seen World) lifecycle.Decision {
	if seen.OtherID == 0 {
		return lifecycle.Decision{}
	}
	return lifecycle.Block("ClusterIDChanged", fmt.Sprintf(
		"The members serve as the cluster %s, and the cluster of this object was %s: its data was replaced, for instance by a restored snapshot. "+
			"Governor changes nothing. To accept it: kubectl -n %s patch etcdcluster %s --subresource=status --type=merge -p '{\"status\":{\"clusterID\":null}}'",
		hex(seen.OtherID), want.Status.ClusterID, want.Namespace, want.Name))
}

// sharedIdentity blocks all removals while several pods answer as one member, e.g. after a data directory was copied.
func sharedIdentity(seen World) lifecycle.Decision {
	if seen.Shared == "" {
		return lifecycle.Decision{}
	}
	return lifecycle.Block("MembersShareID", fmt.Sprintf(
		"%s: one of them has a copy of the other's data. Governor removes nothing. "+
			"Delete the PersistentVolumeClaim and the pod of the copy.", seen.Shared))
}

// divided blocks all removals while serving members have different member lists, e.g. after one
// was started with --force-new-cluster.
func divided(seen World) lifecycle.Decision {
	if seen.Divided == "" {
		return lifecycle.Decision{}
	}
	return lifecycle.Block("MembersDivided", fmt.Sprintf(
		"The members have different member lists: %s. Clients may write to either side. Governor removes nothing. "+
			"Decide which side keeps its data, and delete the PersistentVolumeClaims and the pods of the other.", seen.Divided))
}

// unidentified blocks every removal while etcd lists a member that may be a managed one under
// another URL: one whose ID is not recorded, and which does not answer now.
func unidentified(want desired, seen World) lifecycle.Decision {
	entry, ok := seen.find(unmanaged)
	if !ok {
		return lifecycle.Decision{}
	}
	m, ok := seen.find(func(m Member) bool {
		return ours(m) && !listed(m) && (m.Set.Exists || m.Pod.Exists) && m.Health == Unknown && Remembered(want.EtcdCluster, m.Name).ID == ""
	})
	if !ok {
		return lifecycle.Decision{}
	}
	return lifecycle.Block("MemberUnidentified", fmt.Sprintf(
		"etcd lists the member %s (%s), and %s does not answer: Governor does not know whether they are the same, and removes neither. "+
			"Let %s start, or remove the member %s with etcdctl.", entry.Name, entry.PeerURL, m.Name, m.Name, entry.Name))
}
