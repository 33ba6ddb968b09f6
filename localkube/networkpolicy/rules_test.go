package networkpolicy_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/localkube/networkpolicy"
)

// world has the pod db/0 on this node, and peers elsewhere.
func world(t *testing.T, policies ...string) networkpolicy.World {
	t.Helper()
	w := networkpolicy.World{Node: "n1", Namespaces: []*corev1.Namespace{namespace("db", "team=a"), namespace("web", "team=b")}}
	w.Pods = []*corev1.Pod{
		pod("db", "0", "n1", "10.0.1.1", "app=db"), pod("db", "1", "n2", "10.0.2.1", "app=db"),
		pod("web", "x", "n2", "10.0.2.2", "app=web"), pod("web", "y", "n1", "", "app=web"),
	}
	for _, text := range policies {
		var p networkingv1.NetworkPolicy
		if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
			t.Fatal(err)
		}
		p.Namespace = "db"
		w.Policies = append(w.Policies, &p)
	}
	return w
}

func pod(ns, name, node, ip, label string) *corev1.Pod {
	key, value, _ := strings.Cut(label, "=")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{key: value}}}
	p.Spec.NodeName, p.Status.PodIP = node, ip
	p.Spec.Containers = []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{Name: "client", ContainerPort: 2379}}}}
	return p
}

func namespace(name, label string) *corev1.Namespace {
	key, value, _ := strings.Cut(label, "=")
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{key: value}}}
}

func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		reason, policy string
		want           []string // the rules of the chain of db/0; nil if it is not isolated
	}{
		"Other":     {"a policy for other pods isolates nothing", "{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}", nil},
		"Egress":    {"egress alone leaves ingress open", "{podSelector: {}, policyTypes: [Egress]}", []string{"from-10-0-1-1", "drop"}},
		"All":       {"a policy without rules lets nothing pass", "{podSelector: {}, policyTypes: [Ingress]}", []string{"to-10-0-1-1", "drop"}},
		"Any":       {"an empty rule lets all pass", "{podSelector: {}, policyTypes: [Ingress], ingress: [{}]}", []string{"to-10-0-1-1", "return", "drop"}},
		"Namespace": {"a pod selector alone means the policy's namespace", "{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: db}}}]}]}", []string{"to-10-0-1-1", "ip saddr 10.0.1.1 return", "ip saddr 10.0.2.1 return", "drop"}},
		"Both":      {"two selectors must both match", "{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: db}}, namespaceSelector: {matchLabels: {team: b}}}]}]}", []string{"to-10-0-1-1", "drop"}},
		"Elsewhere": {"a namespace selector alone means all its pods", "{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {team: b}}}]}]}", []string{"to-10-0-1-1", "ip saddr 10.0.2.2 return", "drop"}},
		"Block":     {"a block without its exceptions", "{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.3.0/24]}}]}]}", []string{"to-10-0-1-1", "ip saddr 10.0.0.0/8 ip saddr != { 10.0.3.0/24 } return", "drop"}},
		"Ports":     {"numbers, ranges, names and protocols", "{podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: 80}, {port: 90, endPort: 99, protocol: UDP}, {port: client}, {port: none}, {protocol: UDP}]}]}", []string{"to-10-0-1-1", "tcp dport 80 return", "udp dport 90-99 return", "tcp dport 2379 return", "meta l4proto udp return", "drop"}},
		"ToPort":    {"a named port of egress is the peer's", "{podSelector: {}, policyTypes: [Egress], egress: [{to: [{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}], ports: [{port: client}]}]}", []string{"from-10-0-1-1", "ip daddr 10.0.2.2 tcp dport 2379 return", "drop"}},
	} {
		t.Run(name, func(t *testing.T) {
			rules := world(t, c.policy).Rules()
			if diff := cmp.Diff(c.want, chain(rules)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
			check(t, rules)
		})
	}
}

// The rules of two policies add up. Both directions of one pod have chains of their own.
func TestPoliciesAddUp(t *testing.T) {
	one := "{podSelector: {}, policyTypes: [Ingress, Egress], ingress: [{ports: [{port: 1}]}]}"
	two := "{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{ports: [{port: 2}]}]}"
	rules := world(t, one, two).Rules()
	if diff := cmp.Diff([]string{"to-10-0-1-1", "tcp dport 1 return", "tcp dport 2 return", "drop"}, chain(rules)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(rules, "chain from-10-0-1-1 {") {
		t.Errorf("egress has no chain:\n%s", rules)
	}
	check(t, rules)
}

// chain returns the name and the rules of the first chain of a pod.
func chain(rules string) []string {
	_, found, ok := strings.Cut(rules, "  chain ")
	if !ok {
		return nil
	}
	found, _, _ = strings.Cut(found, "\n  }")
	name, found, _ := strings.Cut(found, " {\n")
	all := []string{name}
	for line := range strings.Lines(found) {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

// check asks nft whether it understands the rules, where it is installed.
func check(t *testing.T, rules string) {
	t.Helper()
	nft, err := exec.LookPath("nft")
	if err != nil {
		return
	}
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--net", nft, "--check", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, rules)
	}
}
