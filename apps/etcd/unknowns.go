package etcd

import etcdv1 "github.com/governor-dev/governor/api/etcd/v1"

// Unknowns is one of the [Abilities].
func (Planner) Unknowns(want *etcdv1.EtcdCluster, seen World) []string {
	if isDeleted(want) {
		return nil // Governor no longer queries etcd
	}
	var all []string
	if !seen.Listed && len(seen.Members) > 0 {
		all = append(all, "The member list in etcd: no member with a quorum answers. The list is derived from Kubernetes.")
	}
	for _, m := range seen.Members {
		if m.Health == Unknown && (m.Role != Outside || m.Pod.Exists) {
			all = append(all, "The state of "+m.Name+": it does not answer.")
		}
	}
	return all
}
