package e2e_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// also is another cluster in the namespace.
func (c *cluster) also(name string) *cluster {
	return &cluster{client.ObjectKey{Namespace: c.key.Namespace, Name: name}, c.driver}
}

// TestEtcdBrokenClustersHoldNoOthers: five clusters with a version that has no image, which is as many as
// the fleet's budget, hold neither the deletion nor a change of a healthy cluster.
func TestEtcdBrokenClustersHoldNoOthers(t *testing.T) {
	healthy := newCluster(t)
	healthy.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 1 })
	var broken []*cluster
	for n := range 5 {
		c := healthy.also(fmt.Sprintf("broken-%d", n))
		c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.Version = 1, "3.6.99" })
		broken = append(broken, c)
	}
	healthy.settled(t)
	for _, c := range broken {
		eventually(t, c.key.Name+" is blocked", func(ctx context.Context) error {
			obj, err := c.read(ctx)
			if err != nil {
				return err
			}
			return tells(obj, lifecycle.OutcomeBlocked, string(lifecycle.PodProblemImagePullBackOff))
		})
	}
	pod := healthy.pod(t, "etcd-0").UID
	healthy.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Pod.Env = []corev1.EnvVar{{Name: "ETCD_LOG_LEVEL", Value: "warn"}}
	})
	healthy.remade(t, "etcd-0", pod)
	healthy.settled(t)
	healthy.goes(t)
	for _, c := range broken {
		c.goes(t)
	}
}

// TestEtcdLongestName: the longest name that the API server accepts, and a member number with two digits,
// fit all labels that Kubernetes derives from them.
func TestEtcdLongestName(t *testing.T) {
	c := newCluster(t).also(strings.Repeat("n", 46))
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size, spec.TLS.Mode = 1, etcdv1.TLSModeManaged })
	c.settled(t)
	obj := c.get(t)
	base := obj.DeepCopy()
	obj.Status.Bootstrap.NextMember = 10
	if err := api.Status().Patch(t.Context(), obj, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 2 })
	if members := c.settled(t).Status.Members; len(members) != 2 || members[1].Name != c.key.Name+"-10" {
		t.Errorf("the members are %+v", members)
	}
	one := c.also(c.key.Name+"n").apply(t.Context(), func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 1 })
	if one == nil || !contains(one.Error(), "metadata.name must be at most 46 characters long") {
		t.Errorf("a longer name: %v", one)
	}
}

// refusesEvictions checks that no pod can be evicted, e.g. by a drain.
func (c *cluster) refusesEvictions(t *testing.T) {
	t.Helper()
	for _, p := range c.pods(t) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		if err := api.SubResource("eviction").Create(t.Context(), &p, eviction); !apierrors.IsTooManyRequests(err) {
			t.Errorf("%s can be evicted while no pod is ready: %v", p.Name, err)
		}
	}
}

// unready waits until Kubernetes reports every pod as not ready.
func (c *cluster) unready(t *testing.T) {
	t.Helper()
	c.Await(t, "no pod is ready", func() error {
		for _, p := range c.pods(t) {
			for _, is := range p.Status.Conditions {
				if is.Type == corev1.PodReady && is.Status == corev1.ConditionTrue {
					return fmt.Errorf("%w: %s is ready", errNotYet, p.Name)
				}
			}
		}
		return nil
	})
}

// admitsTheOperator names clients that do not include the operator. It still reaches a new pod, and other
// clients do not.
func (c *cluster) admitsTheOperator(t *testing.T) {
	other := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "client"}}}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.NetworkPolicy.Clients = []networkingv1.NetworkPolicyPeer{other}
	})
	eventually(t, "the client port is closed for this machine", func(context.Context) error {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(c.pod(t, "etcd-0").Status.PodIP, "2379"), time.Second)
		if err == nil {
			_ = conn.Close()
			return errNotYet
		}
		return nil
	})
	before := etcd.Remembered(c.get(t), "etcd-1")
	c.LosePods(t, "etcd-1")
	c.memberStatus(t, "the operator reaches the new pod", "etcd-1", func(m etcdv1.MemberStatus) bool {
		return m.Health == etcdv1.MemberHealthHealthy && m.Since.After(before.Since.Time)
	})
}
