package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// pauses sets or removes the annotation that pauses the operator.
func (c *cluster) pauses(t *testing.T, paused bool) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj := c.get(t)
		delete(obj.Annotations, lifecycle.AnnotationPaused)
		if paused {
			metav1.SetMetaDataAnnotation(&obj.ObjectMeta, lifecycle.AnnotationPaused, "true")
		}
		return api.Update(t.Context(), obj)
	})
	if err != nil {
		t.Fatal(err)
	}
	if !paused {
		return
	}
	// A reconciliation that has begun before may write Secrets again that it has read.
	eventually(t, "the pause is observed", func(ctx context.Context) error {
		return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
			return apimeta.IsStatusConditionTrue(obj.Status.Conditions, lifecycle.ConditionPaused)
		})
	})
}

// TestEtcdRecoversFromReplacedAuthority: all Secrets are lost at once, or users replace theirs
// without an overlap. Every member keeps its data, and writing clients notice at most the move
// of the quorum.
func TestEtcdRecoversFromReplacedAuthority(t *testing.T) {
	t.Parallel()
	t.Run("managed", func(t *testing.T) {
		c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.TLS.Mode = etcdv1.TLSModeManaged })
		c.heals(t, "etcd-client-tls", func() {
			c.pauses(t, true)
			err := api.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(c.key.Namespace),
				client.MatchingLabels{lifecycle.LabelInstance: c.key.Name})
			if err != nil {
				t.Fatal(err)
			}
			c.pauses(t, false)
		})
	})
	t.Run("own", func(t *testing.T) {
		c := newCluster(t)
		c.ownKeys(t, newAuthority(t))
		c.Apply(t, c.own)
		c.settled(t)
		c.heals(t, "own-client", func() { c.ownKeys(t, newAuthority(t)) })
	})
}

// TestEtcdReplacesAMemberAfterAuthorityIsLost deletes all Secrets and one claim, as `kubectl delete
// secret,pvc -l …` does with --wait=false. The members whose claims stay restart with the new authority;
// only then is the other member replaced.
func TestEtcdReplacesAMemberAfterAuthorityIsLost(t *testing.T) {
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) {
		spec.TLS.Mode = etcdv1.TLSModeManaged
		spec.ReplaceAfter = &metav1.Duration{Duration: time.Minute}
	})
	w := c.write(t, c.withKeys(t, "etcd-client-tls"))
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 50) })
	doomed := c.get(t).Status.Members[1].Name
	c.pauses(t, true)
	c.DeleteClaims(t, doomed)
	must(t, "-n", c.key.Namespace, "delete", "secret", "-l", lifecycle.LabelInstance+"="+c.key.Name)
	c.pauses(t, false)
	within(t, 3*patience, "the member with the deleted claim is replaced", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		if obj.Status.ReadyReplicas != 3 || slices.ContainsFunc(obj.Status.Members, func(m etcdv1.MemberStatus) bool { return m.Name == doomed }) {
			return fmt.Errorf("%w: %d ready, members %v", errNotYet, obj.Status.ReadyReplicas, obj.Status.Members)
		}
		return nil
	})
	c.settled(t)
	w.Stop()
	t.Log(w.Stats())
	o := c.clients()
	c.withKeys(t, "etcd-client-tls")(&o)
	eventually(t, "all that was acknowledged is there", func(ctx context.Context) error {
		n, err := consistencyclient.Count(ctx, o)
		if err != nil {
			return err
		}
		return atLeast(n, w.Stats().Acknowledged)
	})
}

// ownKeys returns all three Secrets with the names of three members: etcd resolves them when a
// peer calls.
func (c *cluster) ownKeys(t *testing.T, a authority) {
	t.Helper()
	names := c.names()
	for n := range 3 {
		names = append(names, fmt.Sprintf("etcd-%d-0.etcd.%s.svc", n, c.key.Namespace))
	}
	for _, name := range []string{"own-peer", "own-server", "own-client"} {
		cert, key, ca := a.leaf(t, time.Now().Add(time.Hour), names...)
		c.give(t, name, map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": ca})
	}
}

// heals checks that the cluster recovers from the replacement of all authorities.
func (c *cluster) heals(t *testing.T, keys string, swap func()) {
	t.Helper()
	before, w := c.get(t), c.write(t, c.withKeys(t, keys))
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 50) })
	uids := map[string]types.UID{}
	for _, m := range before.Status.Members {
		uids[m.Name] = c.pod(t, m.Name).UID
	}
	swap()
	start := time.Now()
	// A change of users' own Secrets wakes no reconcile: a settled cluster reads them once a minute.
	within(t, 2*patience, "every member runs with the present authority", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		seen, err := c.driver.Observe(ctx, obj)
		if err != nil {
			return err
		}
		for _, m := range seen.Members {
			pod := &corev1.Pod{}
			if err := api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: m.Name + "-0"}, pod); err != nil {
				return err // it is being restarted
			}
			if pod.UID == uids[m.Name] {
				return fmt.Errorf("%w: %s has its old pod", errNotYet, m.Name)
			}
			if m.Refused || m.PeersRefused || m.Health != "Healthy" {
				return fmt.Errorf("%w: %s is %q, refused %t and by its peers %t", errNotYet, m.Name, m.Health, m.Refused, m.PeersRefused)
			}
		}
		return nil
	})
	same(t, before, c.settled(t))
	w.Stop()
	t.Logf("healed %s after the swap; %s", time.Since(start).Round(time.Second), w.Stats())
	o := c.clients()
	c.withKeys(t, keys)(&o)
	eventually(t, "all that was acknowledged is there", func(ctx context.Context) error {
		n, err := consistencyclient.Count(ctx, o)
		if err != nil {
			return err
		}
		return atLeast(n, w.Stats().Acknowledged)
	})
}
