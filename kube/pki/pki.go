// Package pki issues certificates and their keys. It decides nothing: the caller says what
// is issued, which authority signs it, and how long it is valid.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
)

// Skew is how far the clocks of a cluster may differ. A certificate is valid since that
// long before it is issued.
const Skew = time.Hour

// serialBits make a serial number unique; RFC 5280 allows 159.
const serialBits = 127

// Pair is a certificate with its private key. Neither its text form nor an error of this
// package contains the key.
type Pair struct {
	Certificate *x509.Certificate
	key         crypto.Signer
}

// Issue generates a key and a certificate for it from the template. The authority signs
// the certificate. Without an authority it is self-signed.
func Issue(template *x509.Certificate, authority *Pair) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, err
	}
	unsigned := *template
	unsigned.SerialNumber = serial
	unsigned.SubjectKeyId, err = keyID(key)
	if err != nil {
		return nil, err
	}
	signer, parent := crypto.Signer(key), &unsigned
	if authority != nil {
		signer, parent = authority.key, authority.Certificate
	}
	der, err := x509.CreateCertificate(rand.Reader, &unsigned, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	signed, err := x509.ParseCertificate(der)
	return &Pair{Certificate: signed, key: key}, err
}

// keyID is the first method of RFC 7093, section 2.
func keyID(key *ecdsa.PrivateKey) ([]byte, error) {
	const length = 20
	public, err := key.PublicKey.Bytes()
	sum := sha256.Sum256(public)
	return sum[:length], err
}

// Parse returns the pair in PEM. It fails if the key does not belong to the certificate.
func Parse(certificate, key []byte) (*Pair, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("a key of this kind cannot sign")
	}
	return &Pair{Certificate: pair.Leaf, key: signer}, nil
}

// Key is the private key as PEM, in PKCS #8, which every language reads.
func (p *Pair) Key() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return nil, errors.New("the key cannot be encoded")
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Encode writes certificates as PEM, one after the other.
func Encode(certificates ...*x509.Certificate) []byte {
	var all []byte
	for _, c := range certificates {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})...)
	}
	return all
}
