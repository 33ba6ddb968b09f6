// Package networkpolicy enforces NetworkPolicies on a node, by rules of nftables in the node's network namespace. The pods
// of a node are routed and not bridged, so all that enters or leaves them is forwarded there.
package networkpolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Table is the table of nftables that has the rules, and nothing else.
const Table = "localkube-networkpolicy"

// World is all that the rules of a node follow from.
type World struct {
	// Node is the name of the node.
	Node       string
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
	Policies   []*networkingv1.NetworkPolicy
}

// Sorted returns the world in the order of names, so that the same world has the same rules.
func (w World) Sorted() World {
	byName := func(a, b metav1.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	}
	w.Pods = slices.SortedFunc(slices.Values(w.Pods), func(a, b *corev1.Pod) int { return byName(a, b) })
	w.Policies = slices.SortedFunc(slices.Values(w.Policies), func(a, b *networkingv1.NetworkPolicy) int { return byName(a, b) })
	return w
}

// direction is one of the two in which a policy isolates a pod.
type direction struct {
	kind networkingv1.PolicyType
	// own and peer are the fields of a packet with the address of the pod, and of its peer.
	own, peer, chain string
}

var directions = []direction{
	{networkingv1.PolicyTypeIngress, "ip daddr", "ip saddr", "to"},
	{networkingv1.PolicyTypeEgress, "ip saddr", "ip daddr", "from"},
}

// Rules returns the script that gives the node its rules, instead of those that it has. Replies pass; what an existing
// connection asks for is judged again, so that an isolated pod is cut off at once.
func (w World) Rules() string {
	var forward, chains strings.Builder
	for _, p := range w.Pods {
		if p.Spec.NodeName != w.Node || !addressed(p) {
			continue
		}
		for _, d := range directions {
			policies := w.selecting(p, d.kind)
			if len(policies) == 0 {
				continue
			}
			name := d.chain + "-" + strings.ReplaceAll(p.Status.PodIP, ".", "-")
			fmt.Fprintf(&forward, "    %s %s jump %s\n", d.own, p.Status.PodIP, name)
			fmt.Fprintf(&chains, "  chain %s {\n%s    drop\n  }\n", name, w.accepted(p, d, policies))
		}
	}
	header := fmt.Sprintf("table inet %s\ndelete table inet %s\n", Table, Table)
	if forward.Len() == 0 {
		return header
	}
	return fmt.Sprintf("%stable inet %s {\n%s  chain forward {\n    type filter hook forward priority filter; policy accept;\n"+
		"    ct direction reply accept\n    ct state related accept\n%s  }\n}\n", header, Table, chains.String(), forward.String())
}

// addressed reports whether the pod has an address of its own.
func addressed(p *corev1.Pod) bool {
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return p.Status.PodIP != "" && !p.Spec.HostNetwork && !over
}

func (w World) selecting(p *corev1.Pod, kind networkingv1.PolicyType) []*networkingv1.NetworkPolicy {
	var all []*networkingv1.NetworkPolicy
	for _, n := range w.Policies {
		if n.Namespace == p.Namespace && slices.Contains(n.Spec.PolicyTypes, kind) && matches(&n.Spec.PodSelector, p.Labels) {
			all = append(all, n)
		}
	}
	return all
}

// matches reports whether the selector selects the labels. An invalid one selects nothing; the API server admits none.
func matches(s *metav1.LabelSelector, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(of))
}

// accepted returns the rules for what the policies let pass: it returns to the chain of all forwarded packets, where the
// other end of the connection may be isolated, too.
func (w World) accepted(p *corev1.Pod, d direction, policies []*networkingv1.NetworkPolicy) string {
	var out strings.Builder
	for _, n := range policies {
		if d.kind == networkingv1.PolicyTypeIngress {
			for _, r := range n.Spec.Ingress {
				w.write(&out, p, d, n.Namespace, r.From, r.Ports)
			}
			continue
		}
		for _, r := range n.Spec.Egress {
			w.write(&out, p, d, n.Namespace, r.To, r.Ports)
		}
	}
	return out.String()
}

func (w World) write(out *strings.Builder, p *corev1.Pod, d direction, namespace string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) {
	for _, from := range w.addresses(d, namespace, peers) {
		server := p // whose ports have the names
		if d.kind == networkingv1.PolicyTypeEgress {
			server = from.pod
		}
		for _, to := range portMatches(ports, server) {
			out.WriteString("    " + strings.TrimSpace(from.match+" "+to) + " return\n")
		}
	}
}

// address matches the packets of a peer. Without a pod it has no named ports.
type address struct {
	match string
	pod   *corev1.Pod
}

func (w World) addresses(d direction, namespace string, peers []networkingv1.NetworkPolicyPeer) []address {
	if len(peers) == 0 {
		return []address{{}}
	}
	var all []address
	for _, peer := range peers {
		if peer.IPBlock != nil {
			all = append(all, address{match: block(d, peer.IPBlock)})
			continue
		}
		for _, p := range w.Pods {
			if addressed(p) && w.isPeer(p, namespace, peer) {
				all = append(all, address{d.peer + " " + p.Status.PodIP, p})
			}
		}
	}
	return all
}

func block(d direction, b *networkingv1.IPBlock) string {
	match := d.peer + " " + b.CIDR
	if len(b.Except) > 0 {
		match += " " + d.peer + " != { " + strings.Join(b.Except, ", ") + " }"
	}
	return match
}

func (w World) isPeer(p *corev1.Pod, namespace string, peer networkingv1.NetworkPolicyPeer) bool {
	if peer.PodSelector != nil && !matches(peer.PodSelector, p.Labels) {
		return false
	}
	if peer.NamespaceSelector == nil {
		return p.Namespace == namespace
	}
	return slices.ContainsFunc(w.Namespaces, func(n *corev1.Namespace) bool {
		return n.Name == p.Namespace && matches(peer.NamespaceSelector, n.Labels)
	})
}

// portMatches returns what matches the ports, one of which is enough; an empty match for all ports.
func portMatches(ports []networkingv1.NetworkPolicyPort, server *corev1.Pod) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var all []string
	for _, port := range ports {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		name := strings.ToLower(string(protocol))
		switch {
		case port.Port == nil:
			all = append(all, "meta l4proto "+name)
		case port.Port.Type == intstr.Int && port.EndPort != nil:
			all = append(all, fmt.Sprintf("%s dport %d-%d", name, port.Port.IntVal, *port.EndPort))
		case port.Port.Type == intstr.Int:
			all = append(all, fmt.Sprintf("%s dport %d", name, port.Port.IntVal))
		default:
			for _, number := range named(server, port.Port.StrVal, protocol) {
				all = append(all, fmt.Sprintf("%s dport %d", name, number))
			}
		}
	}
	return all
}

func named(p *corev1.Pod, name string, protocol corev1.Protocol) []int32 {
	if p == nil {
		return nil
	}
	var all []int32
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == name && (port.Protocol == protocol || port.Protocol == "" && protocol == corev1.ProtocolTCP) {
				all = append(all, port.ContainerPort)
			}
		}
	}
	return all
}
