package etcd

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// The roles in the status.
const (
	roleLeader   = etcdv1.MemberRoleLeader
	roleFollower = etcdv1.MemberRoleFollower
)

// Conditions reports whether the cluster is available and complete, and how many failures it
// tolerates.
func (Planner) Conditions(want *etcdv1.EtcdCluster, seen World, d lifecycle.Decision) []lifecycle.Condition {
	seen = withRememberedRoles(want, seen)
	serving, size := seen.count(seen.servingVoter), int(want.Spec.Size)
	service := lifecycle.Service{
		Available: seen.Listed && seen.missing() == 0, AvailableReason: "QuorumServes", Complete: serving >= size, CompleteReason: "AllServe",
		Message: fmt.Sprintf("%d of %d members serve.", serving, size),
	}
	return slices.Concat(
		service.Conditions(d),
		[]lifecycle.Condition{faultToleranceCondition(want, seen), quorumLostCondition(d), alarmCondition(seen)},
		revocationCondition(want, seen), keptVolumes(want, seen), oldVolumesCondition(want, seen), volumeGrowthCondition(want, seen),
	)
}

// reasonDataLost is the reason of the decision, and the type of the condition, for the loss of a
// quorum's data.
const reasonDataLost = "QuorumLost"

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func quorumLostCondition(d lifecycle.Decision) lifecycle.Condition {
	if d.Reason == reasonDataLost {
		return lifecycle.Condition{Type: reasonDataLost, Status: metav1.ConditionTrue, Reason: "DataLost", Message: d.Message}
	}
	return lifecycle.Condition{
		Type: reasonDataLost, Status: metav1.ConditionFalse, Reason: "DataKept",
		Message: "A majority of the voters has its data, as far as is known.",
	}
}

// Impact is one of the [Abilities].
func (Planner) Impact(want *etcdv1.EtcdCluster, during World) string {
	if isDeleted(want) {
		return "" // Governor no longer queries etcd, and no promise holds
	}
	return fmt.Sprintf("%d of %d voters serve, %s", during.count(during.servingVoter), during.count(voter), mayFail(during.spare()))
}

// spare is the number of voters that may fail.
func (w World) spare() int {
	if !w.Listed {
		return 0
	}
	return max(0, w.count(w.servingVoter)-w.quorum())
}

func mayFail(spare int) string {
	switch spare {
	case 0:
		return "none may fail"
	case 1:
		return "1 member may fail"
	}
	return fmt.Sprintf("%d members may fail", spare)
}

// faultToleranceCondition reports how many members may fail. It notes that an even size adds no
// tolerance.
func faultToleranceCondition(want *etcdv1.EtcdCluster, seen World) lifecycle.Condition {
	spare := seen.spare()
	c := lifecycle.Condition{
		Type: "FaultTolerant", Status: lifecycle.StatusOf(spare > 0), Reason: "MembersToSpare",
		Message: upperFirst(mayFail(spare)) + " without an interruption.",
	}
	if size := want.Spec.Size; size%2 == 0 {
		c.Reason = "EvenSize"
		c.Message += fmt.Sprintf(" Size %d tolerates no more failures than size %d.", size, size-1)
	} else if spare == 0 {
		c.Reason = "NoneToSpare"
	}
	if domain := seen.concentration(); domain != "" {
		c.Message += " The loss of " + domain + " would break the quorum."
		if want.Spec.Rebalance != etcdv1.RebalanceAutomatic {
			c.Message += " With spec.rebalance: Automatic, Governor moves members when a better node has room."
		}
	}
	return c
}

// Status records what was observed, and what later decisions rely on.
func (Planner) Status(want *etcdv1.EtcdCluster, seen World) {
	seen = withRememberedRoles(want, seen)
	s := &want.Status
	s.Version = versions(want, seen)
	s.Bootstrap = remember(want, seen)
	s.Members = members(want, seen)
	s.Replicas = int32(seen.count(ourListed))
	s.ReadyReplicas = int32(seen.count(seen.servingVoter))
	s.Ready = fmt.Sprintf("%d/%d", s.ReadyReplicas, want.Spec.Size)
	s.Selector = labels.SelectorFromSet(selector(want)).String()
	s.ServiceName = ClientServiceName(want)
	s.Endpoints = []string{clientScheme(want) + "://" + host(want, ClientServiceName(want)) + ":2379"}
	s.ClientSecretName = ClientSecret(want)
	s.VolumeRetention = volumeRetention(want, seen)
	s.NetworkPolicy = new(networkPolicyInEffect(want, seen)).DeepCopy()
	s.Leader = ""
	if l, ok := seen.leader(); ok {
		s.Leader = l.Name
	}
	if seen.ClusterID != 0 {
		s.ClusterID = hex(seen.ClusterID)
	}
	s.Phase = phase(want, seen)
}

func phase(want *etcdv1.EtcdCluster, seen World) etcdv1.Phase {
	switch {
	case isDeleted(want):
		return etcdv1.PhaseDeleting
	case !formed(want, seen):
		return etcdv1.PhaseCreating
	case !seen.Listed || seen.missing() > 0:
		return etcdv1.PhaseUnavailable
	case seen.count(seen.servingVoter) < int(want.Spec.Size):
		return etcdv1.PhaseDegraded
	}
	return etcdv1.PhaseRunning
}

// versions chooses a version if none is declared, and only once.
func versions(want *etcdv1.EtcdCluster, seen World) etcdv1.VersionStatus {
	v := want.Status.Version
	if want.Spec.Version == "" && v.Chosen == "" {
		v.Chosen = Newest
	}
	v.Current = present(want, seen).String()
	v.Target = ""
	if to, err := target(want); err == nil {
		v.Target = to.String()
	}
	return v
}

// remember keeps what was recorded and adds what is new. If the record was deleted, the objects
// in Kubernetes show which members exist, and whether they are forming the cluster.
func remember(want *etcdv1.EtcdCluster, seen World) *etcdv1.BootstrapStatus {
	m := initialBootstrap(want, seen)
	if want.Status.Bootstrap != nil {
		m = *want.Status.Bootstrap
	}
	m.Formed = m.Formed || formed(want, seen)
	m.NextMember = max(m.NextMember, nextNumber(want, seen))
	m.TriedSpreads = triedSpreads(want, seen)
	return &m
}

// withRecord returns the object with the record that Status adds if members exist without one. The
// members then keep what they have.
func withRecord(want *etcdv1.EtcdCluster, seen World) *etcdv1.EtcdCluster {
	if want.Status.Bootstrap != nil || seen.count(inKube) == 0 {
		return want
	}
	m := initialBootstrap(want, seen)
	want = want.DeepCopy()
	want.Status.Bootstrap = &m
	return want
}

// initialBootstrap is the first record. Existing members mean that the record was deleted from the
// status. If they were forming the cluster, their bootstrap ConfigMaps show the initial members.
// Otherwise the initial members are unknown, and none may bootstrap a cluster.
func initialBootstrap(want *etcdv1.EtcdCluster, seen World) etcdv1.BootstrapStatus {
	m := etcdv1.BootstrapStatus{Token: token(want), Formed: seen.count(inKube) > 0, InitialMembers: []string{}, NextMember: int64(want.Spec.Size)}
	if m.Formed && forms(seen) {
		m.Formed, m.InitialMembers, m.NextMember = false, seen.Initial, int64(len(seen.Initial))
		return m
	}
	if m.Formed {
		return m
	}
	if to, err := target(want); err == nil {
		m.FirstVersion = to.String()
	}
	for n := range int64(want.Spec.Size) {
		m.InitialMembers = append(m.InitialMembers, memberName(want, n))
	}
	return m
}

// forms reports that all members are initial members that no quorum was ever observed of.
func forms(seen World) bool {
	_, other := seen.find(func(m Member) bool { return !slices.Contains(seen.Initial, m.Name) })
	return !seen.Listed && len(seen.Initial) > 0 && !other
}

// members keeps the last known role and version of members that do not answer. Rules rely on
// both when there is no quorum.
func members(want *etcdv1.EtcdCluster, seen World) []etcdv1.MemberStatus {
	var all []etcdv1.MemberStatus
	gone := expelled(want, seen)
	for _, m := range seen.Members {
		if KeptVolume(seen, m) {
			continue
		}
		s := member(want, seen, m)
		if slices.Contains(gone, m.Name) {
			s.Role = Remembered(want, m.Name).Role // until a user decides
		}
		all = append(all, s)
	}
	for _, old := range want.Status.Members {
		if _, ok := seen.named(old.Name); !ok && !seen.Listed && !isDeleted(want) {
			old.Health, old.Problem, old.Node = etcdv1.MemberHealthUnknown, "Missing", ""
			all = append(all, old)
		}
	}
	slices.SortStableFunc(all, func(a, b etcdv1.MemberStatus) int { return int(Number(a.Name) - Number(b.Name)) })
	return all[:min(len(all), etcdv1.MaxMembers)]
}

func member(want *etcdv1.EtcdCluster, seen World, m Member) etcdv1.MemberStatus {
	old := Remembered(want, m.Name)
	s := etcdv1.MemberStatus{
		Name: m.Name, ID: old.ID, Role: old.Role, Version: ran(want, m),
		Health: etcdv1.MemberHealth(m.Health), Node: m.Pod.Node, Problem: string(m.Pod.Trouble), Maintenance: maintenance(old, m),
	}
	if s.Health == "" {
		s.Health = etcdv1.MemberHealthUnknown
	}
	if seen.Listed {
		s.Role = role(m)
	}
	if m.ID != 0 {
		s.ID = hex(m.ID) // an unlisted member keeps its last ID
	}
	switch {
	case dataLost(m):
		s.Problem = "DataLost"
	case claimTerminating(m):
		s.Problem = volumeDeleted
	}
	if !m.Since.IsZero() {
		s.Since = &metav1.Time{Time: m.Since}
	}
	if mebibytes := m.DBSize >> 20; mebibytes > 0 {
		s.DBSize = resource.NewQuantity(mebibytes<<20, resource.BinarySI)
	}
	return s
}

// maintenance keeps the end of the maintenance, which only the operator that leads at that time
// can observe.
func maintenance(old etcdv1.MemberStatus, m Member) *etcdv1.NodeMaintenance {
	switch {
	case m.Maintenance != "":
		return &etcdv1.NodeMaintenance{Node: m.Maintenance}
	case old.Maintenance == nil || m.Returned.IsZero():
		return nil
	}
	return &etcdv1.NodeMaintenance{Node: old.Maintenance.Node, Ended: &metav1.Time{Time: m.Returned}}
}

func role(m Member) etcdv1.MemberRole {
	switch {
	case m.Role == Voter && m.Leads:
		return roleLeader
	case m.Role == Voter:
		return roleFollower
	}
	return etcdv1.MemberRole(m.Role)
}
