package etcd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// LabelMember names the member that a StatefulSet, a pod or a volume belongs to.
	LabelMember = "etcd.database.coreos.com/member"
	// LabelCluster is the UID of the cluster on its volumes, which may outlive it.
	LabelCluster = "etcd.database.coreos.com/cluster-uid"

	// LabelExposed says whether the client Service selects the pods of a StatefulSet. Its
	// values are those of [Exposure].
	LabelExposed = "etcd.database.coreos.com/exposed"

	clientPort  = 2379
	peerPort    = 2380
	metricsOnly = 2381
)

// Resources returns all objects except StatefulSets and volumes, which only steps change:
// Services, the disruption budget, bootstrap ConfigMaps, certificates and a NetworkPolicy. It
// does not touch the objects of an earlier cluster that still serves.
func (p Planner) Resources(want *etcdv1.EtcdCluster, seen World) ([]lifecycle.Object, error) {
	if isDeleted(want) {
		return nil, nil
	}
	if d := nameTaken(seen); d.IsSet() {
		return nil, &lifecycle.DecisionError{Decision: d}
	}
	want = withRecord(want, seen)
	all := []lifecycle.Object{peerService(want), balancedService(want, seen), disruptionBudget(want, seen)}
	for _, m := range currentMembers(want, seen) {
		all = append(all, bootstrapConfig(want, seen, m))
	}
	if inEffect := networkPolicyInEffect(want, seen); inEffect.Enabled {
		all = append(all, networkPolicy(want, inEffect.Clients, p.Operator))
	}
	return append(all, certificateSecrets(want, seen)...), nil
}

// currentMembers are the managed members that exist or are about to.
func currentMembers(want *etcdv1.EtcdCluster, seen World) []Member {
	var all []Member
	if !formed(want, seen) {
		for _, name := range bootstrapState(want).InitialMembers {
			m, _ := seen.named(name)
			m.Name = name
			all = append(all, m)
		}
		return all
	}
	for _, m := range seen.Members {
		if ours(m) && !KeptVolume(seen, m) {
			all = append(all, m)
		}
	}
	return all
}

// selector contains the instance, so two clusters in a namespace never share pods. It can never
// change, because a StatefulSet's selector cannot.
func selector(want *etcdv1.EtcdCluster) map[string]string {
	return map[string]string{
		lifecycle.LabelName:     Name,
		lifecycle.LabelInstance: want.Name,
		lifecycle.LabelApp:      Name,
	}
}

// clientSelector selects the pods that receive client traffic. It selects all pods as long as
// one has no label, because an older operator sent clients to all of them.
func clientSelector(want *etcdv1.EtcdCluster, seen World) map[string]string {
	l := selector(want)
	if _, older := seen.find(unlabelled); !older {
		l[LabelExposed] = string(Exposed)
	}
	return l
}

func unlabelled(m Member) bool {
	return m.Set.Exists && m.Set.Exposure == Unlabelled || m.Pod.Exists && !m.Pod.Leaving && m.Pod.Exposure == Unlabelled
}

func memberLabels(want *etcdv1.EtcdCluster, member string) map[string]string {
	l := selector(want)
	l[LabelMember] = member
	return l
}

func named(want *etcdv1.EtcdCluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: selector(want)}
}

// ClientServiceName is the name of the Service that clients use.
func ClientServiceName(want *etcdv1.EtcdCluster) string { return want.Name + "-client" }

// host is the DNS name of an object in the namespace, or under the peer Service.
func host(want *etcdv1.EtcdCluster, parts ...string) string {
	name := strings.Join(append(parts, want.Namespace, "svc"), ".")
	if d := want.Spec.ClusterDomain; d != "" {
		name += "." + d
	}
	return name
}

func podHost(want *etcdv1.EtcdCluster, member string) string {
	return host(want, member+"-0", want.Name)
}

// PeerURL is the URL by which the other members reach the member. It identifies the managed
// members in etcd's list.
func PeerURL(want *etcdv1.EtcdCluster, member string) string {
	return fmt.Sprintf("%s://%s:%d", peerScheme(want), podHost(want, member), peerPort)
}

// ClientURL is the URL for the operator, and for clients that need this member.
func ClientURL(want *etcdv1.EtcdCluster, member string) string {
	return fmt.Sprintf("%s://%s:%d", clientScheme(want), podHost(want, member), clientPort)
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString(name)}
}

// peerService gives every pod a DNS name before it is ready: members must reach each other to
// become ready.
func peerService(want *etcdv1.EtcdCluster) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: named(want, want.Name),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: selector(want),
			Ports: []corev1.ServicePort{port("client", clientPort), port("peer", peerPort)},
		},
	}
}

func balancedService(want *etcdv1.EtcdCluster, seen World) *corev1.Service {
	return &corev1.Service{ObjectMeta: named(want, ClientServiceName(want)), Spec: corev1.ServiceSpec{
		Selector: clientSelector(want, seen), Ports: []corev1.ServicePort{port("client", clientPort)},
	}}
}

// disruptionBudget keeps the quorum of the present voters. Learners are ready and no part of a quorum, so the budget counts only pods that
// receive client traffic.
func disruptionBudget(want *etcdv1.EtcdCluster, seen World) *policyv1.PodDisruptionBudget {
	available := intstr.FromInt(leastAvailable(want, seen))
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: named(want, want.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &available, Selector: &metav1.LabelSelector{MatchLabels: clientSelector(want, seen)},
			// After an outage of the API server, serving pods may be marked not ready for a
			// while. A drain must not evict them as if they were broken. A broken pod is
			// still evicted while enough others are ready.
			UnhealthyPodEvictionPolicy: new(policyv1.IfHealthyBudget),
		},
	}
}

// leastAvailable is how many pods a drain leaves running: the quorum of the present voters. The
// quorum of spec.size would block the restarts of a cluster that grows. A cluster of one or two
// has no member to spare, so a drain may interrupt it, unless its data would be lost.
func leastAvailable(want *etcdv1.EtcdCluster, seen World) int {
	voters, size := seen.count(voter), int(want.Spec.Size)
	if voters == 0 {
		voters = size // not known, or not formed yet
	}
	switch few := voters == 1 || voters == 2 && size <= 2; {
	case few && Volatile(want):
		return voters
	case few:
		return voters - 1
	}
	return voters/2 + 1
}

// bootstrapMode is the mode that the member's bootstrap ConfigMap should have. It stays
// unchanged while no quorum reports the member list, unless the initial members are no longer
// known: the record was deleted from the status after the cluster had formed.
func bootstrapMode(want *etcdv1.EtcdCluster, seen World, m Member) BootstrapMode {
	switch {
	case !formed(want, seen) && initial(want, m.Name):
		return BootstrapCluster
	case !formed(want, seen):
		return BootstrapDisabled
	case !seen.Listed && m.Bootstrap == BootstrapCluster && !initial(want, m.Name):
		return BootstrapDisabled
	case !seen.Listed:
		return m.Bootstrap
	case !listed(m) || m.Joined || dataLost(m):
		return BootstrapDisabled
	case initial(want, m.Name) && removedNext(want, seen, m):
		return BootstrapDisabled
	case initial(want, m.Name):
		return BootstrapCluster
	}
	return BootstrapJoin
}

// removedNext reports that the member will be removed before it ever started. Its bootstrap
// ConfigMap is disabled first, or it could start after its removal.
func removedNext(want *etcdv1.EtcdCluster, seen World, m Member) bool {
	victim, ok := removalCandidate(seen)
	return ok && victim.Name == m.Name && seen.count(ourListed) > int(want.Spec.Size)
}

// bootstrapConfig returns the ConfigMap that etcd's container reads at each start.
func bootstrapConfig(want *etcdv1.EtcdCluster, seen World, m Member) *corev1.ConfigMap {
	d := bootstrapMode(want, seen, m)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: BootstrapConfigName(m.Name), Labels: memberLabels(want, m.Name),
			Annotations: map[string]string{lifecycle.AnnotationDrift: lifecycle.DriftRepair},
		},
		Data: map[string]string{
			bootstrapKey: cmp.Or(string(d), bootstrapDisabled), "token": token(want), "state": state(d), "cluster": cluster(want, seen, m, d),
		},
	}
}

// bootstrapKey is the key of the mode in the ConfigMap, and bootstrapDisabled the value for
// [BootstrapDisabled].
const (
	bootstrapKey      = "bootstrap"
	bootstrapDisabled = "Disabled"
)

// BootstrapModeOf reads the mode from a bootstrap ConfigMap.
func BootstrapModeOf(c *corev1.ConfigMap) BootstrapMode {
	if mode := c.Data[bootstrapKey]; mode != bootstrapDisabled {
		return BootstrapMode(mode)
	}
	return BootstrapDisabled
}

// InitialClusterOf reads etcd's --initial-cluster from a bootstrap ConfigMap with which a member
// forms the cluster; empty for another one.
func InitialClusterOf(c *corev1.ConfigMap) string {
	if BootstrapModeOf(c) != BootstrapCluster {
		return ""
	}
	return c.Data["cluster"]
}

// InitialMembersOf returns the members that form a cluster, from the values of InitialClusterOf
// by member. It returns nil unless each of these members has such a ConfigMap, and no other has.
func InitialMembersOf(clusters map[string]string) []string {
	var names []string
	for _, cluster := range clusters {
		if names = initialNames(cluster); len(names) != len(clusters) {
			return nil
		}
	}
	for member, cluster := range clusters {
		if !slices.Contains(names, member) || !slices.Equal(initialNames(cluster), names) {
			return nil
		}
	}
	return names
}

func initialNames(cluster string) (names []string) {
	for entry := range strings.SplitSeq(cluster, ",") {
		if name, _, ok := strings.Cut(entry, "="); ok {
			names = append(names, name)
		}
	}
	return names
}

// BootstrapConfigName is the name of the member's bootstrap ConfigMap.
func BootstrapConfigName(member string) string { return member + "-bootstrap" }

func state(d BootstrapMode) string {
	if d == BootstrapCluster {
		return "new"
	}
	return "existing"
}

// cluster is etcd's --initial-cluster. If the bootstrap is disabled, it names no member.
func cluster(want *etcdv1.EtcdCluster, seen World, m Member, d BootstrapMode) string {
	var all []string
	switch d {
	case BootstrapDisabled:
		return "identity-in-use=http://identity-in-use.invalid:2380"
	case BootstrapCluster:
		for _, name := range bootstrapState(want).InitialMembers {
			all = append(all, name+"="+PeerURL(want, name))
		}
	case BootstrapJoin:
		for _, o := range seen.Members {
			if listed(o) || o.Name == m.Name {
				all = append(all, o.Name+"="+peerURL(want, o))
			}
		}
	}
	return strings.Join(all, ",")
}

func peerURL(want *etcdv1.EtcdCluster, m Member) string {
	if m.PeerURL != "" {
		return m.PeerURL
	}
	return PeerURL(want, m.Name)
}

// networkPolicy admits only members and the operator to the peer port. A list of clients always
// includes them, too: an operator without access sees no quorum, and not which certificates the
// peer ports accept, and repairs nothing.
func networkPolicy(want *etcdv1.EtcdCluster, clients []networkingv1.NetworkPolicyPeer, operator string) *networkingv1.NetworkPolicy {
	peers := append(operatorPeer(operator), networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: selector(want)}})
	if len(clients) > 0 {
		clients = slices.Concat(peers, clients)
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: named(want, want.Name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector(want)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: peers, Ports: open(peerPort)},
				{From: clients, Ports: open(clientPort)},
				{From: clients, Ports: open(metricsOnly)},
			},
		},
	}
}

// operatorPeer selects the operator's pods in their namespace.
func operatorPeer(namespace string) []networkingv1.NetworkPolicyPeer {
	if namespace == "" {
		return nil
	}
	return []networkingv1.NetworkPolicyPeer{{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{lifecycle.LabelName: "governor"}},
	}}
}

func open(number int32) []networkingv1.NetworkPolicyPort {
	p := intstr.FromInt32(number)
	return []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: &p}}
}

// merged combines the user's entries with the operator's. The operator's entries win.
func merged(users, our map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, users)
	maps.Copy(all, our)
	return all
}
