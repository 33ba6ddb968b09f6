package e2e_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

func contains(said, words string) bool { return strings.Contains(said, words) }

// restricted makes the namespace reject every pod that violates the restricted Pod Security
// Standard.
func (c *cluster) restricted(t *testing.T) {
	t.Helper()
	ns := &corev1.Namespace{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: c.key.Namespace}, ns); err != nil {
		t.Fatal(err)
	}
	base := ns.DeepCopy()
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := api.Patch(t.Context(), ns, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
}

// TestEtcdObjectsAreAsDeclared: in a namespace that admits restricted pods only, with the users'
// pod settings, the disruption budget and the NetworkPolicy.
func TestEtcdObjectsAreAsDeclared(t *testing.T) {
	c := newCluster(t)
	c.restricted(t)
	from := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}, {IPBlock: &networkingv1.IPBlock{CIDR: ownAddress(t) + "/32"}}}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Size, spec.NetworkPolicy = 3, etcdv1.NetworkPolicySpec{Enabled: true, Clients: from}
		spec.Pod = etcdv1.PodSettings{
			Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"example.com/a": "b"},
			NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
			Tolerations:  []corev1.Toleration{{Key: "etcd", Operator: corev1.TolerationOpExists}},
			Env:          []corev1.EnvVar{{Name: "ETCD_HEARTBEAT_INTERVAL", Value: "150"}}, Args: []string{"--election-timeout=1500"},
		}
	})
	c.settled(t)
	t.Run("the pods", func(t *testing.T) {
		for _, p := range c.pods(t) {
			c.isAsDeclared(t, &p)
		}
	})
	t.Run("etcd's settings", func(t *testing.T) {
		for _, m := range []string{"etcd-0", "etcd-1", "etcd-2"} {
			logs := must(t, "-n", c.key.Namespace, "logs", m+"-0", "--limit-bytes=100000")
			if !contains(logs, `"heartbeat-interval":"150ms"`) || !contains(logs, `"election-timeout":"1.5s"`) {
				t.Errorf("%s does not run with what was set", m)
			}
		}
	})
	t.Run("the budget", c.budget)
	t.Run("the NetworkPolicy", c.policy)
	t.Run("the columns", c.columns)
	t.Run("the events", c.events)
	t.Run("clients without the operator", c.admitsTheOperator)
}

func (c *cluster) isAsDeclared(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if p.Labels["team"] != "a" || p.Annotations["example.com/a"] != "b" || p.Spec.NodeSelector["kubernetes.io/os"] != "linux" {
		t.Errorf("%s has labels %v, annotations %v, selector %v", p.Name, p.Labels, p.Annotations, p.Spec.NodeSelector)
	}
	if !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool { return o.Key == "etcd" }) {
		t.Errorf("%s tolerates %v", p.Name, p.Spec.Tolerations)
	}
	if p.Spec.AutomountServiceAccountToken == nil || *p.Spec.AutomountServiceAccountToken {
		t.Errorf("%s mounts a token that it does not need", p.Name)
	}
}

func (c *cluster) budget(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{}
	eventually(t, "one of three pods may be disrupted", func(ctx context.Context) error {
		if err := api.Get(ctx, c.key, budget); err != nil {
			return err
		}
		if s := budget.Status; s.DisruptionsAllowed != 1 || s.DesiredHealthy != 2 {
			return fmt.Errorf("%w: %+v", errNotYet, s)
		}
		return nil
	})
}

func (c *cluster) policy(t *testing.T) {
	p := &networkingv1.NetworkPolicy{}
	if err := api.Get(t.Context(), c.key, p); err != nil {
		t.Fatal(err)
	}
	open := map[int][]networkingv1.NetworkPolicyPeer{}
	for _, rule := range p.Spec.Ingress {
		for _, port := range rule.Ports {
			open[port.Port.IntValue()] = rule.From
		}
	}
	if len(open[2380]) != 2 || slices.ContainsFunc(open[2380], func(o networkingv1.NetworkPolicyPeer) bool { return o.PodSelector == nil }) {
		t.Errorf("the peer port is open for %+v, want the members and the operator", open[2380])
	}
	if !slices.ContainsFunc(open[2379], func(o networkingv1.NetworkPolicyPeer) bool { return o.NamespaceSelector != nil }) {
		t.Errorf("the client port is open for %+v", open[2379])
	}
	c.isClosedHere(t)
}

// isClosedHere checks that no peer port answers this machine, which is a client and no member.
func (c *cluster) isClosedHere(t *testing.T) {
	t.Helper()
	for _, p := range c.pods(t) {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(p.Status.PodIP, "2380"), time.Second)
		if err == nil {
			_ = conn.Close()
			t.Errorf("the peer port of %s answers a host that the NetworkPolicy does not admit", p.Name)
		}
	}
}

// ownAddress is the address from which this machine reaches the cluster's nodes, and hence pods.
func ownAddress(t *testing.T) string {
	t.Helper()
	var nodes corev1.NodeList
	if err := api.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		conn, err := net.Dial("udp", net.JoinHostPort(a.Address, "9"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return conn.LocalAddr().(*net.UDPAddr).IP.String()
	}
	t.Fatal("the first node has no address")
	return ""
}

func (c *cluster) columns(t *testing.T) {
	obj := c.get(t)
	lines := strings.Split(must(t, "-n", c.key.Namespace, "get", "etcdc"), "\n")
	if head := strings.Fields(lines[0]); !slices.Equal(head, []string{"NAME", "READY", "STATUS", "VERSION", "LEADER", "AGE"}) {
		t.Errorf("the columns are %v", head)
	}
	if row := strings.Fields(lines[1]); !slices.Equal(row[:5], []string{"etcd", "3/3", "AsDeclared", obj.Status.Version.Current, obj.Status.Leader}) {
		t.Errorf("the row is %v", row)
	}
}

// events checks that `kubectl describe` shows the history.
func (c *cluster) events(t *testing.T) {
	eventually(t, "the events show the history", func(context.Context) error {
		story, err := kubectl("-n", c.key.Namespace, "events", "--for", "etcdcluster/"+c.key.Name)
		if err != nil {
			return err
		}
		for _, words := range []string{"Bootstrapping", "start the cluster together", "AsDeclared"} {
			if !contains(story, words) {
				return fmt.Errorf("%w: no event mentions %s:\n%s", errNotYet, words, story)
			}
		}
		if contains(story, "Repaired") {
			t.Errorf("nothing has changed, yet events report repairs:\n%s", story)
		}
		return nil
	})
}

// TestEtcdPausedIsNotRepaired: Governor repairs nothing until the pause ends; Kubernetes' own
// repairs continue.
func TestEtcdPausedIsNotRepaired(t *testing.T) {
	c := formed(t, 3)
	before := c.get(t)
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Paused = true })
	c.LoseSet(t, "etcd-0")
	eventually(t, "the loss is seen", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool { return obj.Status.ReadyReplicas == 2 })
	})
	if obj := c.get(t); obj.Status.ObservedGeneration != obj.Generation {
		t.Errorf("the generation %d is paused, and the observed one is %d: clients such as kstatus wait", obj.Generation, obj.Status.ObservedGeneration)
	}
	c.Rests(t)
	if seen := c.Observe(t); seen.Members[0].Set.Exists {
		t.Errorf("a paused cluster was repaired: %+v", seen.Members[0])
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Paused = false })
	same(t, before, c.settled(t))
}
