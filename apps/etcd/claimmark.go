package etcd

import (
	"slices"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// AnnotationMember is on a claim since Governor created it, and identifies the member it was created
// for. A copy of another member's claim has another value, or none.
const AnnotationMember = "etcd.database.coreos.com/member-id"

// ClaimMark is the value of [AnnotationMember] on a new claim of the member: its ID in etcd's list, which
// no other addition gets. The first members have no ID before they form the cluster.
func ClaimMark(want *etcdv1.EtcdCluster, seen World, name string) string {
	return claimMarks(want, seen, name)[0]
}

func claimMarks(want *etcdv1.EtcdCluster, seen World, name string) []string {
	var marks []string
	if m, _ := seen.named(name); m.ID != 0 {
		marks = append(marks, hex(m.ID))
	} else if id := Remembered(want, name).ID; id != "" {
		marks = append(marks, id)
	}
	if initial(want, name) || len(marks) == 0 {
		marks = append(marks, name+"."+string(want.UID))
	}
	return marks
}

// UsesClaim reports whether the member may start on an existing claim with that mark. A new member
// starts only on a claim that Governor created for it: data of another member would give two processes
// one ID. A member that has started keeps its claim, whatever the mark is.
func UsesClaim(want *etcdv1.EtcdCluster, seen World, name, mark string) bool {
	return !isNew(want, seen, name) || slices.Contains(claimMarks(want, seen, name), mark)
}

// isNew reports that no pod of the member has run yet. While no quorum returns the member list, the
// status shows it.
func isNew(want *etcdv1.EtcdCluster, seen World, name string) bool {
	m, _ := seen.named(name)
	last := Remembered(want, name)
	switch {
	case m.Set.Exists || m.Pod.Exists || m.Unmanaged:
		return false
	case seen.Listed:
		return listed(m) && !m.Joined
	case formed(want, seen) || want.Status.ClusterID != "" || seen.ClusterID != 0:
		return last.Role == etcdv1.MemberRoleLearner && last.Version == ""
	}
	return initial(want, name) && last.Version == ""
}
