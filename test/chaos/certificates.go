package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// Names of the user's own Secrets.
const ownPeer, ownServer, ownClient = "own-peer", "own-server", "own-client"

// giveCertificates creates the user's own Secrets, of one authority. They have the instance's label, so
// that the adversary finds them.
func (s *subject) giveCertificates(ctx context.Context) error {
	ca, err := signed(nil, &x509.Certificate{Subject: pkix.Name{CommonName: "a user's own"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	if err != nil {
		return err
	}
	ns := s.Key.Namespace
	hosts := "*." + instanceName + "." + ns + ".svc"
	names := []string{hosts, hosts + ".cluster.local", instanceName + "-client." + ns + ".svc", "localhost"}
	var all error
	for _, name := range []string{ownPeer, ownServer, ownClient} {
		leaf, err := signed(ca, &x509.Certificate{
			Subject: pkix.Name{CommonName: "own"}, DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		})
		if err != nil {
			return err
		}
		all = errors.Join(all, s.api.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{lifecycle.LabelInstance: instanceName}},
			Data:       map[string][]byte{corev1.TLSCertKey: leaf.certificate, corev1.TLSPrivateKeyKey: leaf.private, "ca.crt": ca.certificate},
		}))
	}
	return all
}

// pair is a certificate with its key, both also in PEM.
type pair struct {
	parsed               *x509.Certificate
	key                  *ecdsa.PrivateKey
	certificate, private []byte
}

// signed is a certificate of the authority; without one it signs itself.
func signed(by *pair, template *x509.Certificate) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		return nil, err
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(48*time.Hour)
	parent := &pair{parsed: template, key: key}
	if by != nil {
		parent = by
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent.parsed, &key.PublicKey, parent.key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	p := &pair{key: key, certificate: inPEM("CERTIFICATE", raw), private: inPEM("EC PRIVATE KEY", der)}
	p.parsed, err = x509.ParseCertificate(raw)
	return p, err
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
