package driver

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/governor-dev/governor/kube/pki"
)

// party is an authority with one certificate, good for both ends.
type party struct {
	authority, leaf *pki.Pair
}

func newParty(t *testing.T, name string) party {
	t.Helper()
	ca, err := pki.Issue(&x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := pki.Issue(&x509.Certificate{
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"e-0"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, ca)
	if err != nil {
		t.Fatal(err)
	}
	return party{ca, leaf}
}

// config shows the party's certificate and trusts the other's authority.
func (p party) config(t *testing.T, trusts party) *tls.Config {
	t.Helper()
	key, err := p.leaf.Key()
	if err != nil {
		t.Fatal(err)
	}
	c, err := configure(bundle{pki.Encode(p.leaf.Certificate), key, pki.Encode(trusts.authority.Certificate)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHandshakeDetectsRefusedCertificates has each side in turn not know the other's
// authority, and members that do not answer for other reasons.
func TestHandshakeDetectsRefusedCertificates(t *testing.T) {
	// Authorities with different names, too: a client keeps back a certificate that no authority of the server's has signed.
	old, present, renamed := newParty(t, "ca"), newParty(t, "ca"), newParty(t, "another ca")
	cases := map[string]struct {
		member, trusted party
		name            string
		versions        uint16
		want            verdict
	}{
		"Accepted":     {present, present, "e-0", tls.VersionTLS13, accepted},
		"MemberOld":    {old, present, "e-0", tls.VersionTLS13, refused},
		"OperatorNew":  {present, old, "e-0", tls.VersionTLS13, refused},
		"OperatorNew2": {present, old, "e-0", tls.VersionTLS12, refused},
		"Renamed":      {present, renamed, "e-0", tls.VersionTLS13, refused},
		"Renamed2":     {present, renamed, "e-0", tls.VersionTLS12, refused},
		"OtherName":    {present, present, "e-1", tls.VersionTLS13, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			member := httptest.NewUnstartedServer(http.NotFoundHandler())
			member.TLS = c.member.config(t, c.trusted)
			member.TLS.ClientCAs, member.TLS.ClientAuth, member.TLS.MaxVersion = member.TLS.RootCAs, tls.RequireAndVerifyClientCert, c.versions
			member.StartTLS()
			defer member.Close()
			if got := handshake(t.Context(), member.Listener.Addr().String(), c.name, present.config(t, present), 4*time.Second); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	picky := httptest.NewUnstartedServer(http.NotFoundHandler())
	picky.TLS = present.config(t, present)
	picky.Config.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateActive {
			_ = c.Close() // as etcd does when it does not like the caller's address
		}
	}
	picky.StartTLS()
	defer picky.Close()
	if v := handshake(t.Context(), picky.Listener.Addr().String(), "e-0", present.config(t, present), 4*time.Second); v != accepted {
		t.Errorf("a member that knows the authority and hangs up: %q", v)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if v := handshake(t.Context(), silent.Addr().String(), "e-0", present.config(t, present), 50*time.Millisecond); v != "" {
		t.Error("a member that does not answer is taken for one that refuses")
	}
	_ = silent.Close()
	if v := handshake(t.Context(), silent.Addr().String(), "e-0", present.config(t, present), time.Minute); v != "" {
		t.Error("a port that is closed is taken for a refusal")
	}
}
