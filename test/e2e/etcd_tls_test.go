package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// withKeys makes a consistency client use the certificates in the Secret.
func (c *cluster) withKeys(t *testing.T, secret string) func(*consistencyclient.Options) {
	t.Helper()
	s := &corev1.Secret{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: c.key.Namespace, Name: secret}, s); err != nil {
		t.Fatal(err)
	}
	config, err := consistencyclient.TLSConfig(s, c.key.Name+"-client."+c.key.Namespace+".svc")
	if err != nil {
		t.Fatal(err)
	}
	return func(o *consistencyclient.Options) { o.TLS = config }
}

// rejects checks that etcd accepts no write of such a client.
func (c *cluster) rejects(t *testing.T, whose string, edit func(*consistencyclient.Options)) {
	t.Helper()
	w := c.write(t, edit)
	eventually(t, whose+" is turned away", func(context.Context) error {
		if tally := w.Stats(); tally.LastFailure == nil || tally.Failed < 8 {
			return fmt.Errorf("%w: %s", errNotYet, tally)
		}
		return nil
	})
	w.Stop()
	if n := w.Stats().Acknowledged; n > 0 {
		t.Errorf("%d writes of %s were taken", n, whose)
	}
}

// TestEtcdIsEncryptedByDefault: only clients with the Secret can write, also while members are
// added and removed and a Secret is lost.
func TestEtcdIsEncryptedByDefault(t *testing.T) {
	c := formed(t, 3, func(spec *etcdv1.EtcdClusterSpec) { spec.TLS.Mode = etcdv1.TLSModeManaged })
	obj := c.get(t)
	w := c.write(t, c.withKeys(t, obj.Status.ClientSecretName))
	c.rejects(t, "plain text", func(*consistencyclient.Options) {})
	c.rejects(t, "a client without a certificate", func(o *consistencyclient.Options) {
		c.withKeys(t, obj.Status.ClientSecretName)(o)
		o.TLS.Certificates = nil
	})
	c.rejects(t, "a client with a member's certificate for peers", func(o *consistencyclient.Options) {
		c.withKeys(t, obj.Status.ClientSecretName)(o)
		peers := &consistencyclient.Options{}
		c.withKeys(t, "etcd-0-peer-tls")(peers)
		o.TLS.Certificates = peers.TLS.Certificates
	})
	c.LoseVolumes(t, "etcd-1")
	replaced(t, obj, c.settled(t), "etcd-1")
	c.peers(t)
	must(t, "-n", c.key.Namespace, "delete", "secret", obj.Status.ClientSecretName)
	c.settled(t)
	c.write(t, c.withKeys(t, obj.Status.ClientSecretName)).Stop()
	kept(t, w)
}

// authority issues certificates independent of the operator.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	raw  []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{}
	a.raw, a.cert, a.key = a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a user's own"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// sign returns the certificate; without a key the authority signs itself.
func (a authority) sign(t *testing.T, template *x509.Certificate) ([]byte, *x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return raw, cert, key
}

// leaf is a certificate, its key and the authority, in PEM, good until then.
func (a authority) leaf(t *testing.T, until time.Time, names ...string) (cert, key, ca []byte) {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	raw, _, private := a.sign(t, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "own"}, DNSNames: names,
		NotBefore: until.Add(-2 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	armour := func(kind string, b []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}) }
	return armour("CERTIFICATE", raw), armour("EC PRIVATE KEY", der), armour("CERTIFICATE", a.raw)
}

// names are the DNS names of the members and the Service.
func (c *cluster) names() []string {
	ns := c.key.Namespace
	return []string{"*.etcd." + ns + ".svc", "*.etcd." + ns + ".svc.cluster.local", "etcd-client." + ns + ".svc", "localhost"}
}

// give writes the user's Secret.
func (c *cluster) give(t *testing.T, name string, data map[string][]byte) {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: name}, Data: data}
	err := api.Create(t.Context(), s)
	if client.IgnoreAlreadyExists(err) == nil && err != nil {
		err = api.Update(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) own(spec *etcdv1.EtcdClusterSpec) {
	spec.Size = 3
	spec.TLS = etcdv1.TLSSpec{Mode: etcdv1.TLSModeSecrets, Secrets: &etcdv1.TLSSecrets{Peer: "own-peer", Server: "own-server", Client: "own-client"}}
}

// modern writes all three Secrets with the usual keys.
func (c *cluster) modern(t *testing.T, a authority, names ...string) {
	t.Helper()
	for _, name := range names {
		cert, key, ca := a.leaf(t, time.Now().Add(time.Hour), c.names()...)
		c.give(t, name, map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": ca})
	}
}

// TestEtcdOwnSecrets: Governor reports a missing, broken or expired Secret and the remedy, starts
// no member before it is correct, and uses a changed one at once.
func TestEtcdOwnSecrets(t *testing.T) {
	c, a := newCluster(t), newAuthority(t)
	c.modern(t, a, "own-client")
	cert, key, ca := a.leaf(t, time.Now().Add(time.Hour), "*.etcd."+c.key.Namespace+".svc", "localhost")
	c.give(t, "own-peer", map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": ca})
	c.Apply(t, c.own)
	told := func(words string) {
		t.Helper()
		eventually(t, "the status reports: "+words, func(ctx context.Context) error {
			return c.has(ctx, func(obj *etcdv1.EtcdCluster) bool {
				stalled := apimeta.FindStatusCondition(obj.Status.Conditions, lifecycle.ConditionStalled)
				return stalled != nil && stalled.Reason == "CertificatesUnusable" && contains(stalled.Message, words)
			})
		})
	}
	told(`with which etcd's members refuse each other. Issue it for "*.etcd.` + c.key.Namespace + `.svc.cluster.local" too.`)
	c.modern(t, a, "own-peer")
	told(`spec.tls.secrets.server: the Secret "own-server" does not exist`)
	c.give(t, "own-server", map[string][]byte{"tls.crt": []byte("no"), "tls.key": []byte("no"), "ca.crt": []byte("no")})
	told("are not a certificate in PEM with its key")
	cert, key, ca = a.leaf(t, time.Now().Add(-time.Minute), c.names()...)
	c.give(t, "own-server", map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": ca})
	told("has a certificate that expired on")
	if pods := c.pods(t); len(pods) > 0 {
		t.Errorf("%d pods were started without certificates", len(pods))
	}
	c.modern(t, a, "own-server")
	c.settled(t)
	w := c.write(t, c.withKeys(t, "own-client"))
	c.rejects(t, "plain text", func(*consistencyclient.Options) {})
	c.modern(t, a, "own-peer", "own-server", "own-client")
	before := w.Stats().Acknowledged
	eventually(t, "writes go on", func(context.Context) error { return atLeast(w.Stats().Acknowledged, before+100) })
	c.settled(t)
	kept(t, w)
}

// TestEtcdOwnSecretsOfTheLegacyAPI have other keys.
func TestEtcdOwnSecretsOfTheLegacyAPI(t *testing.T) {
	c, a := newCluster(t), newAuthority(t)
	for name, prefix := range map[string]string{"own-peer": "peer", "own-server": "server", "own-client": "etcd-client"} {
		cert, key, ca := a.leaf(t, time.Now().Add(time.Hour), c.names()...)
		c.give(t, name, map[string][]byte{prefix + ".crt": cert, prefix + ".key": key, prefix + "-ca.crt": ca})
	}
	c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { c.own(spec); spec.Size = 1 })
	c.settled(t)
	cert, key, ca := a.leaf(t, time.Now().Add(time.Hour))
	config, err := consistencyclient.TLSConfig(&corev1.Secret{Data: map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": ca}},
		"etcd-client."+c.key.Namespace+".svc")
	if err != nil {
		t.Fatal(err)
	}
	w := c.write(t, func(o *consistencyclient.Options) { o.TLS = config })
	eventually(t, "something is written", func(context.Context) error { return atLeast(w.Stats().Acknowledged, 20) })
	c.rejects(t, "a foreign certificate", func(o *consistencyclient.Options) {
		cert, key, _ := newAuthority(t).leaf(t, time.Now().Add(time.Hour))
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		o.TLS = config.Clone()
		o.TLS.Certificates = []tls.Certificate{pair}
	})
	kept(t, w)
}
