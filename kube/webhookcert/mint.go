package webhookcert

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"

	"github.com/governor-dev/governor/kube/pki"
)

// minted is a new certificate with its key and its authority, as PEM.
type minted struct{ certificate, key, authority []byte }

// mint makes a certificate for the names and an authority that signed nothing else.
func mint(names []string, now time.Time) (minted, error) {
	authority, err := pki.Issue(template(now, "governor-webhook-ca", nil), nil)
	if err != nil {
		return minted{}, fmt.Errorf("cannot make an authority: %w", err)
	}
	leaf, err := pki.Issue(template(now, names[0], names), authority)
	if err != nil {
		return minted{}, fmt.Errorf("cannot make a certificate: %w", err)
	}
	key, err := leaf.Key()
	if err != nil {
		return minted{}, err
	}
	return minted{certificate: pki.Encode(leaf.Certificate), key: key, authority: pki.Encode(authority.Certificate)}, nil
}

// template is an authority if there are no names to serve.
func template(now time.Time, name string, names []string) *x509.Certificate {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name, Organization: []string{"governor.dev"}},
		NotBefore:             now.Add(-pki.Skew),
		NotAfter:              now.Add(life),
		BasicConstraintsValid: true,
		DNSNames:              names,
	}
	if len(names) == 0 {
		t.IsCA, t.MaxPathLenZero, t.KeyUsage = true, true, x509.KeyUsageCertSign
		return t
	}
	t.KeyUsage, t.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return t
}
