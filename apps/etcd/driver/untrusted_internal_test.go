package driver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A rotation that replaces some of the Secrets is named, before a member restarts with them.
func TestUntrustedCertificates(t *testing.T) {
	one, other := data(t, noon.Add(time.Hour), standardKeys), data(t, noon.Add(time.Hour), standardKeys)
	both := map[string][]byte{"tls.crt": one["tls.crt"], "tls.key": one["tls.key"], "ca.crt": append(append([]byte{}, one["ca.crt"]...), other["ca.crt"]...)}
	mixed := map[string][]byte{"tls.crt": one["tls.crt"], "tls.key": one["tls.key"], "ca.crt": other["ca.crt"]}
	cases := map[string]struct {
		reason               string
		peer, server, client map[string][]byte
		peers                bool
		want                 string // empty: all trust each other
	}{
		"One":        {"all are of one authority", one, one, one, true, ""},
		"Peers":      {"peers may have their own", other, one, one, true, ""},
		"Client":     {"members would refuse the operator", one, one, other, true, `spec.tls.secrets.server: the Secret "server" has a certificate that no authority in "ca.crt" of the Secret "client" has signed`},
		"Overlap":    {"the members trust both", one, both, map[string][]byte{"tls.crt": other["tls.crt"], "tls.key": other["tls.key"], "ca.crt": one["ca.crt"]}, true, ""},
		"Peer":       {"members would refuse each other", mixed, one, one, true, `spec.tls.secrets.peer: the Secret "peer"`},
		"WithoutOne": {"there is no other member", mixed, one, one, false, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var all []userSecret
			for i, field := range []string{"peer", "server", "client"} {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: field}, Data: []map[string][]byte{c.peer, c.server, c.client}[i]}
				all = append(all, userSecret{secretRef: secretRef{field, field, peer}, secret: s})
			}
			if got := untrusted(all, c.peers); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %s", c.reason, got)
			}
		})
	}
}

// TestRenewedAuthority: an authority that was renewed with its key is younger than certificates that it has signed.
func TestRenewedAuthority(t *testing.T) {
	authority := func(begins time.Time) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: begins, NotAfter: noon.Add(time.Hour),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
	}
	key, leafKey := newKey(t), newKey(t)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour)}
	renewed := authority(noon.Add(-time.Minute))
	der, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	b := bundle{
		certificate: signed(t, leaf, authority(noon.Add(-2*time.Hour)), leafKey, key),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}
	if !signedBy(b, signed(t, renewed, renewed, key, key)) {
		t.Error("the renewed authority is not the one that signed")
	}
	if other := newKey(t); signedBy(b, signed(t, renewed, renewed, other, other)) {
		t.Error("an authority with another key has not signed it")
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(t *testing.T, c, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}
