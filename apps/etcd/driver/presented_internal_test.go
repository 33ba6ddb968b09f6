package driver

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A member presents the current contents of its files in each handshake. Certificates that the
// operator does not trust do not count.
func TestPresentedBy(t *testing.T) {
	old, present := newParty(t, "ca"), newParty(t, "ca")
	cases := map[string]struct {
		member, trusted party
		want            []byte
	}{
		"Present": {present, present, present.leaf.Certificate.Raw},
		"Old":     {old, old, old.leaf.Certificate.Raw},
		"Refused": {old, present, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			member := httptest.NewUnstartedServer(http.NotFoundHandler())
			member.TLS = c.member.config(t, present)
			member.TLS.ClientCAs, member.TLS.ClientAuth = member.TLS.RootCAs, tls.RequireAndVerifyClientCert
			member.StartTLS()
			defer member.Close()
			if got := presentedBy(t.Context(), member.Listener.Addr().String(), "e-0", present.config(t, c.trusted)); !bytes.Equal(got, c.want) {
				t.Errorf("%d bytes, want %d", len(got), len(c.want))
			}
		})
	}
	if presentedBy(t.Context(), "127.0.0.1:1", "e-0", present.config(t, present)) != nil {
		t.Error("a closed port presents a certificate")
	}
}
