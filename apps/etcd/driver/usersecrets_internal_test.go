package driver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// data has a certificate that expires then, under the keys.
func data(t *testing.T, expires time.Time, l keyNames) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: expires.Add(-time.Hour), NotAfter: expires}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	armour := func(kind string, b []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}) }
	cert := armour("CERTIFICATE", raw)
	return map[string][]byte{l.certificate: cert, l.key: armour("EC PRIVATE KEY", der), l.authorities: cert}
}

var peer = keyNames{"peer.crt", "peer.key", "peer-ca.crt"}

func TestValidateUserSecret(t *testing.T) {
	good := func(l keyNames) map[string][]byte { return data(t, noon.Add(time.Hour), l) }
	with := func(key, value string) map[string][]byte {
		d := good(standardKeys)
		d[key] = []byte(value)
		return d
	}
	both := good(standardKeys)
	for key, value := range good(peer) {
		both[key] = value
	}
	cases := map[string]struct {
		reason string
		data   map[string][]byte
		absent bool
		want   string // empty: nothing is wrong
	}{
		"Absent":    {"the user forgot it", nil, true, "does not exist. Create it"},
		"Empty":     {"there is nothing in it", nil, false, `has no key "tls.crt". It needs "tls.crt", "tls.key" and "ca.crt"`},
		"Modern":    {"the keys of every TLS Secret", good(standardKeys), false, ""},
		"Legacy":    {"the keys of the legacy API", good(peer), false, ""},
		"Both":      {"the modern keys win", both, false, ""},
		"NoKey":     {"a certificate without its key", with("tls.key", ""), false, `has no key "tls.key"`},
		"NotPEM":    {"a key that is none", with("tls.key", "x"), false, "are not a certificate in PEM with its key"},
		"Mismatch":  {"the key of another certificate", with("tls.key", string(good(standardKeys)["tls.key"])), false, "with its key"},
		"NoCA":      {"an authority that is none", with("ca.crt", "x"), false, `"ca.crt" has no certificate in PEM`},
		"Expired":   {"yesterday's certificate", data(t, noon.Add(-time.Hour), standardKeys), false, "expired on 2026-06-01"},
		"LegacyBad": {"the message names the keys that the Secret has", map[string][]byte{"peer.crt": []byte("x")}, false, `has no key "peer.key"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, u := &corev1.Secret{Data: c.data}, secretRef{field: "peer", name: "p", legacy: peer}
			got := userSecret{secretRef: u, secret: s, legacy: isLegacy(s, u)}.validate(c.absent, noon)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
			if got != "" && !strings.HasPrefix(got, `spec.tls.secrets.peer: the Secret "p" `) {
				t.Errorf("%q does not say where to look", got)
			}
		})
	}
}

func withOwnSecrets() *etcdv1.EtcdCluster {
	want := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "ns", UID: "uid"}}
	want.Spec.TLS = etcdv1.TLSSpec{Mode: etcdv1.TLSModeSecrets, Secrets: &etcdv1.TLSSecrets{Peer: "p", Server: "s", Client: "c"}}
	return want
}

// A Secret that could not be read does not count as valid, now or later.
func TestUnreadableSecretsAreNotCached(t *testing.T) {
	bad := errors.New("the API server did not answer")
	fails := true
	live := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if fails {
				return bad
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	d := &Driver{live: live, now: func() time.Time { return noon }, tlsCache: newTLSCache()}
	if _, err := d.keys(t.Context(), withOwnSecrets()); !errors.Is(err, bad) {
		t.Fatalf("got %v, want %v", err, bad)
	}
	fails = false
	k, err := d.keys(t.Context(), withOwnSecrets())
	if err != nil || !strings.Contains(k.problem, `"p" does not exist`) {
		t.Errorf("got %q, %v, want that the Secret does not exist", k.problem, err)
	}
}

// A problem ends as soon as the Secret is corrected, and a replaced Secret is seen at once.
func TestCorrectedSecretIsUsedAtOnce(t *testing.T) {
	shared := data(t, noon.Add(time.Hour), standardKeys)
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: shared}
	}
	live := fake.NewClientBuilder().WithObjects(secret("p"), secret("s")).Build()
	d := &Driver{live: live, now: func() time.Time { return noon }, tlsCache: newTLSCache()}
	observe := func() string {
		t.Helper()
		k, err := d.keys(t.Context(), withOwnSecrets())
		if err != nil {
			t.Fatal(err)
		}
		return k.problem
	}
	if problem := observe(); !strings.Contains(problem, `"c" does not exist`) {
		t.Fatalf("got %q", problem)
	}
	if err := live.Create(t.Context(), secret("c")); err != nil {
		t.Fatal(err)
	}
	if problem := observe(); problem != "" {
		t.Errorf("it was corrected, but %q", problem)
	}
	before, err := d.keys(t.Context(), withOwnSecrets())
	if err != nil {
		t.Fatal(err)
	}
	replaced := secret("c")
	replaced.Data = data(t, noon.Add(2*time.Hour), standardKeys)
	if err := live.Update(t.Context(), replaced); err != nil {
		t.Fatal(err)
	}
	if after, err := d.keys(t.Context(), withOwnSecrets()); err != nil || after.digest == before.digest {
		t.Errorf("a Secret was replaced, and the former one is used: %v", err)
	}
}

// One cluster's Secrets must all have the same keys: the flags of etcd are rendered
// for one kind of keys.
func TestSecretsMustHaveTheSameKeys(t *testing.T) {
	secret := func(name string, l keyNames) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: data(t, noon.Add(time.Hour), l)}
	}
	live := fake.NewClientBuilder().WithObjects(secret("p", peer), secret("s", standardKeys), secret("c", standardKeys)).Build()
	d := &Driver{live: live, now: func() time.Time { return noon }, tlsCache: newTLSCache()}
	k, err := d.keys(t.Context(), withOwnSecrets())
	if err != nil || !strings.Contains(k.problem, `"s" has other keys than the rest`) {
		t.Errorf("got %q, %v", k.problem, err)
	}
}
