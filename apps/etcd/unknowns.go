package etcd

// Unknowns is one of the [Abilities].
func (Planner) Unknowns(seen World) []string {
	if seen.Leaving {
		return nil // etcd is not asked any more
	}
	var all []string
	if !seen.Listed && len(seen.Members) > 0 {
		all = append(all, "The member list is as Kubernetes has it: no member with a quorum behind it answers.")
	}
	for _, m := range seen.Members {
		if m.Health == Unknown && (m.Role != Outside || m.Pod.Exists) {
			all = append(all, "How "+m.Name+" is: it does not answer.")
		}
	}
	return all
}
