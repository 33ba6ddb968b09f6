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

	// LabelExposed says of a StatefulSet and its pods whether clients are led to them; its
	// values are those of [Exposure].
	LabelExposed = "etcd.database.coreos.com/exposed"

	clientPort  = 2379
	peerPort    = 2380
	metricsOnly = 2381
)

// Resources is everything but StatefulSets and volumes, which only Steps touch:
// Services, the disruption budget, doors, certificates, a NetworkPolicy. Those of an
// earlier cluster that still serves are left to it.
func (p Planner) Resources(want *etcdv1.EtcdCluster, seen World) ([]lifecycle.Object, error) {
	if leaving(want) {
		return nil, nil
	}
	if d := nameTaken(seen); d.IsSet() {
		return nil, &lifecycle.DecisionError{Decision: d}
	}
	all := []lifecycle.Object{peerService(want), balancedService(want, seen), disruptionBudget(want, seen)}
	for _, m := range residents(want, seen) {
		all = append(all, bootstrapConfig(want, seen, m))
	}
	if want.Spec.NetworkPolicy.Enabled {
		all = append(all, networkPolicy(want, p.Operator))
	}
	return append(all, certificateSecrets(want, seen)...), nil
}

// residents are the members of ours that exist, or are about to.
func residents(want *etcdv1.EtcdCluster, seen World) []Member {
	var all []Member
	if !formed(want, seen) {
		for _, name := range memory(want).InitialMembers {
			m, _ := seen.named(name)
			m.Name = name
			all = append(all, m)
		}
		return all
	}
	for _, m := range seen.Members {
		if ours(m) {
			all = append(all, m)
		}
	}
	return all
}

// selector has the instance in it: two clusters in a namespace never share pods.
// It can never change, because a StatefulSet's selector cannot.
func selector(want *etcdv1.EtcdCluster) map[string]string {
	return map[string]string{
		lifecycle.LabelName:     Name,
		lifecycle.LabelInstance: want.Name,
		lifecycle.LabelApp:      Name,
	}
}

// audience selects the pods that clients are led to: all, as long as any has no label,
// for an older operator led clients to it.
func audience(want *etcdv1.EtcdCluster, seen World) map[string]string {
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

func clientService(want *etcdv1.EtcdCluster) string { return want.Name + "-client" }

// host is the DNS name of something in the namespace, or under the peer Service.
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

// PeerURL is where the other members find the member. It is how a member of etcd's
// list is known to be one of ours.
func PeerURL(want *etcdv1.EtcdCluster, member string) string {
	return fmt.Sprintf("%s://%s:%d", peerScheme(want), podHost(want, member), peerPort)
}

// ClientURL is where the operator, and clients that want a certain member, find it.
func ClientURL(want *etcdv1.EtcdCluster, member string) string {
	return fmt.Sprintf("%s://%s:%d", clientScheme(want), podHost(want, member), clientPort)
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString(name)}
}

// peerService gives every pod a name, also before it is ready: members must find
// each other to become ready.
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
	return &corev1.Service{
		ObjectMeta: named(want, clientService(want)),
		Spec: corev1.ServiceSpec{
			Selector: audience(want, seen), Ports: []corev1.ServicePort{port("client", clientPort)},
		},
	}
}

// disruptionBudget keeps a quorum of what is and of what is wanted. One or two
// members have none to spare; with volumes a drained node costs them an
// interruption, without volumes it would cost the data. Learners are ready and no part of
// a quorum, so only those are counted that clients are led to.
func disruptionBudget(want *etcdv1.EtcdCluster, seen World) *policyv1.PodDisruptionBudget {
	most := max(int(want.Spec.Size), seen.count(voter))
	least := most/2 + 1
	switch {
	case most <= 2 && Volatile(want):
		least = most
	case most <= 2:
		least = most - 1
	}
	available := intstr.FromInt(least)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: named(want, want.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &available, Selector: &metav1.LabelSelector{MatchLabels: audience(want, seen)},
			// After an outage of the API server, pods that serve may be called not ready
			// for a while. A drain must not evict them as if they were broken. A broken
			// pod is still evicted while enough others are ready.
			UnhealthyPodEvictionPolicy: new(policyv1.IfHealthyBudget),
		},
	}
}

// bootstrapMode is how the member's door should stand. While no quorum says who is a member,
// it stays as it is.
func bootstrapMode(want *etcdv1.EtcdCluster, seen World, m Member) BootstrapMode {
	switch {
	case !formed(want, seen) && initial(want, m.Name):
		return BootstrapCluster
	case !formed(want, seen):
		return BootstrapDisabled
	case !seen.Listed:
		return m.Bootstrap
	case !listed(m) || m.Joined || dataLost(m):
		return BootstrapDisabled
	case initial(want, m.Name) && goesNext(want, seen, m):
		return BootstrapDisabled
	case initial(want, m.Name):
		return BootstrapCluster
	}
	return BootstrapJoin
}

// goesNext says that the member is removed before it ever started. Its door is shut
// first, or it could begin after it was removed.
func goesNext(want *etcdv1.EtcdCluster, seen World, m Member) bool {
	victim, ok := removalCandidate(seen)
	return ok && victim.Name == m.Name && seen.count(ourListed) > int(want.Spec.Size)
}

// bootstrapConfig is what etcd's container reads at each start.
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

// bootstrapKey is where a door's ConfigMap says how it stands, and shut how an open one
// does not.
const (
	bootstrapKey      = "door"
	bootstrapDisabled = "Shut"
)

// BootstrapModeOf is how the door stands, by its ConfigMap.
func BootstrapModeOf(c *corev1.ConfigMap) BootstrapMode {
	if stands := c.Data[bootstrapKey]; stands != bootstrapDisabled {
		return BootstrapMode(stands)
	}
	return BootstrapDisabled
}

// BootstrapConfigName is the name of the ConfigMap that is the door of the member.
func BootstrapConfigName(member string) string { return member + "-door" }

func state(d BootstrapMode) string {
	if d == BootstrapCluster {
		return "new"
	}
	return "existing"
}

// cluster is etcd's --initial-cluster. Of a shut door it names nobody.
func cluster(want *etcdv1.EtcdCluster, seen World, m Member, d BootstrapMode) string {
	var all []string
	switch d {
	case BootstrapDisabled:
		return "identity-in-use=http://identity-in-use.invalid:2380"
	case BootstrapCluster:
		for _, name := range memory(want).InitialMembers {
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

// networkPolicy lets only members reach the peer port. Where clients are named, members
// and the operator are always among them: an operator that is kept out sees no quorum,
// and heals nothing.
func networkPolicy(want *etcdv1.EtcdCluster, operator string) *networkingv1.NetworkPolicy {
	members := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: selector(want)}}
	clients := want.Spec.NetworkPolicy.Clients
	if len(clients) > 0 {
		clients = slices.Concat([]networkingv1.NetworkPolicyPeer{members}, operatorPeer(operator), clients)
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: named(want, want.Name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selector(want)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: []networkingv1.NetworkPolicyPeer{members}, Ports: open(peerPort)},
				{From: clients, Ports: open(clientPort)},
				{From: clients, Ports: open(metricsOnly)},
			},
		},
	}
}

// operatorPeer is the operator's pods in their namespace.
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

// merged has the user's entries and ours, and ours win.
func merged(users, our map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, users)
	maps.Copy(all, our)
	return all
}
