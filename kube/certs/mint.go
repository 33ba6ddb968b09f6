package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// minted is a new certificate with its key and its authority, as PEM.
type minted struct{ certificate, key, authority []byte }

// mint makes a certificate for the names and an authority that signed nothing else.
func mint(names []string, now time.Time) (minted, error) {
	authority, authorityKey, err := issue(template(now, "governor-webhook-ca", nil), nil, nil)
	if err != nil {
		return minted{}, fmt.Errorf("cannot make an authority: %w", err)
	}
	leaf, key, err := issue(template(now, names[0], names), authority, authorityKey)
	if err != nil {
		return minted{}, fmt.Errorf("cannot make a certificate: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return minted{}, fmt.Errorf("cannot encode a key: %w", err)
	}
	return minted{certificate: encode(leaf), key: keyPEM, authority: encode(authority)}, nil
}

// template is an authority if there are no names to serve.
func template(now time.Time, name string, names []string) *x509.Certificate {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name, Organization: []string{"governor.dev"}},
		NotBefore:             now.Add(-skew),
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

// issue signs the certificate with a new key of its own, or with the parent's.
func issue(c, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.ParseCertificate(der)
	return signed, key, err
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})
}
