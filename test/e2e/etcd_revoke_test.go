package e2e_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// TestEtcdRevokesALeakedAuthority: a client with the keys of both authorities gets in until they
// are revoked, and never again, even after the old Secrets are restored. Clients that reread
// their Secret write all the time.
func TestEtcdRevokesALeakedAuthority(t *testing.T) {
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.TLS.Mode = etcdv1.TLSModeManaged })
	before := c.get(t)
	leaked := map[string]*corev1.Secret{"2379": c.secret(t, "etcd-ca"), "2380": c.secret(t, "etcd-peer-ca")}
	forged := map[string]tls.Certificate{}
	for port, s := range leaked {
		forged[port] = stolen(t, s).forge(t, fmt.Sprintf("etcd-0-0.etcd.%s.svc", c.key.Namespace))
	}
	c.lets(t, forged, true)
	w := c.write(t, c.reloading(t, before.Status.ClientSecretName))
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 50) })

	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.TLS.RevokeBefore = new(metav1.Now()) })
	start := time.Now()
	c.revoked(t)
	same(t, before, c.settled(t))
	t.Logf("revoked after %s; %s", time.Since(start).Round(time.Second), w.Stats())
	c.lets(t, forged, false)
	c.peers(t)
	if gap := w.LongestGap(start); gap > 10*time.Second {
		t.Errorf("clients could not write for %s", gap)
	}

	for _, old := range leaked {
		c.restore(t, old)
		eventually(t, old.Name+" is replaced", func(context.Context) error {
			if s := c.secret(t, old.Name); bytes.Contains(s.Data["ca.crt"], old.Data["tls.crt"]) || bytes.Equal(s.Data["tls.key"], old.Data["tls.key"]) {
				return fmt.Errorf("%w: the restored authority is trusted", errNotYet)
			}
			return nil
		})
	}
	c.settled(t)
	c.lets(t, forged, false)
	kept(t, w)
}

// secret is one of the cluster's namespace.
func (c *cluster) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: c.key.Namespace, Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// restore writes the data of a backup into the Secret.
func (c *cluster) restore(t *testing.T, backup *corev1.Secret) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		s := c.secret(t, backup.Name)
		s.Data = backup.Data
		return api.Update(t.Context(), s)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stolen is the authority of the Secret.
func stolen(t *testing.T, s *corev1.Secret) authority {
	t.Helper()
	pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert: pair.Leaf, key: pair.PrivateKey.(*ecdsa.PrivateKey), raw: pair.Leaf.Raw}
}

func (a authority) forge(t *testing.T, names ...string) tls.Certificate {
	t.Helper()
	cert, key, _ := a.leaf(t, time.Now().Add(time.Hour), names...)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// lets checks whether every member accepts the forged certificates, each at its port.
func (c *cluster) lets(t *testing.T, forged map[string]tls.Certificate, pass bool) {
	t.Helper()
	for _, p := range c.pods(t) {
		for port, shown := range forged {
			if err := calls(net.JoinHostPort(p.Status.PodIP, port), shown); (err == nil) != pass {
				t.Errorf("%s at port %s with a forged certificate: %v, want it to pass: %t", p.Name, port, err, pass)
			}
		}
	}
}

// revoked waits for the end of the revocation, and checks that its phases were reported.
func (c *cluster) revoked(t *testing.T) {
	t.Helper()
	var told []string
	within(t, 4*patience, "the authorities are revoked", func(ctx context.Context) error {
		obj, err := c.read(ctx)
		if err != nil {
			return err
		}
		fact := apimeta.FindStatusCondition(obj.Status.Conditions, "AuthorityRevoked")
		if fact == nil {
			return fmt.Errorf("%w: no condition", errNotYet)
		}
		if !slices.Contains(told, fact.Reason) {
			t.Logf("%s: %s", fact.Reason, fact.Message)
			told = append(told, fact.Reason)
		}
		if fact.Status != metav1.ConditionTrue {
			return fmt.Errorf("%w: %s", errNotYet, fact.Message)
		}
		return nil
	})
	if want := []string{"DistributingTrust", "ReplacingCertificates", "RemovingTrust", "Revoked"}; !slices.Equal(told, want) {
		t.Errorf("the phases were %v, want %v", told, want)
	}
}

// reloading makes a consistency client read the Secret at each handshake, as clients should.
func (c *cluster) reloading(t *testing.T, secret string) func(*consistencyclient.Options) {
	t.Helper()
	ctx, name := t.Context(), c.key.Name+"-client."+c.key.Namespace+".svc"
	read := func() (*tls.Config, error) {
		s := &corev1.Secret{}
		err := retry.OnError(retry.DefaultBackoff, func(error) bool { return ctx.Err() == nil }, func() error {
			return api.Get(ctx, client.ObjectKey{Namespace: c.key.Namespace, Name: secret}, s)
		})
		if err != nil {
			return nil, err
		}
		return consistencyclient.TLSConfig(s, name)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: name, InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			keys, err := read()
			if err != nil {
				return nil, err
			}
			return &keys.Certificates[0], nil
		},
		VerifyConnection: func(s tls.ConnectionState) error {
			keys, err := read()
			if err != nil {
				return err
			}
			_, err = s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: keys.RootCAs, DNSName: name})
			return err
		},
	}
	return func(o *consistencyclient.Options) { o.TLS = config }
}

// TestEtcdRevokesWhileItGrows: a cluster of one grows and revokes its authority in one declaration. The disruption budget keeps
// the quorum of the present members, so no restart waits for members that can join only after it.
func TestEtcdRevokesWhileItGrows(t *testing.T) {
	c := formed(t, 1, func(spec *etcdv1.EtcdClusterSpec) { spec.TLS.Mode = etcdv1.TLSModeManaged })
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) {
		spec.Size, spec.TLS.RevokeBefore = 3, new(metav1.Now())
	})
	c.revoked(t)
	if obj := c.settled(t); obj.Status.Ready != "3/3" {
		t.Errorf("%s serve", obj.Status.Ready)
	}
}
