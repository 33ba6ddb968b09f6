package lifecycle

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationCertificate on a Secret of Resources asks for a certificate: its value
// is a [Certificate] as JSON. [Certificate.Secret] writes it.
const AnnotationCertificate = "governor.dev/certificate"

// Keys of a Secret that asked for a certificate, all PEM. They are those of the
// Secrets that cert-manager makes, so either can be mounted in the other's place.
const (
	// KeyCertificate is the certificate.
	KeyCertificate = corev1.TLSCertKey
	// KeyPrivate is its private key.
	KeyPrivate = corev1.TLSPrivateKeyKey
	// KeyAuthorities are all authorities to trust: the one that signs, the one that
	// will sign next, and former ones until they expire or are revoked. The same
	// authorities are always the same bytes, so a digest of the value tells whether
	// trust changed.
	KeyAuthorities = corev1.ServiceAccountRootCAKey
)

// Certificate is the recipe of a certificate. There is no secret in it: a Planner
// stays pure, and the engine fills in the keys of the Secret before it is applied.
//
// A certificate is good for a year and an authority for ten; both are renewed when
// two thirds of that have passed. What is missing, damaged, or no longer as the
// recipe says is made anew at once. An authority that is lost is replaced by
// another, and the lost one stays trusted for what it has signed. To end that trust,
// for instance after a leak, takes a [Revocation].
//
// Whoever reads the Secret only once, at its start, must start again when ca.crt
// has changed: within 30 days of it the next authority does not sign.
type Certificate struct {
	// Authority is the name of the Secret that signs, which Resources must return
	// too. It is empty for an authority itself, which has its own certificate in
	// both tls.crt and ca.crt.
	Authority string `json:"authority,omitempty"`
	// CommonName of the subject. A change of an authority's own is not a reason to
	// replace it.
	CommonName string `json:"commonName"`
	// DNSNames and IPAddresses that it is valid for.
	DNSNames    []string `json:"dnsNames,omitempty"`
	IPAddresses []string `json:"ipAddresses,omitempty"`
	// Server and Client are what it may be used for.
	Server bool `json:"server,omitempty"`
	Client bool `json:"client,omitempty"`
	// Revocation of former authorities, in the recipe of an authority only.
	Revocation *Revocation `json:"revocation,omitempty"`
}

// Secret returns the Secret that asks for the certificate, to be returned from
// [Planner.Resources].
func (c Certificate) Secret(name string, labels map[string]string) *corev1.Secret {
	recipe, _ := json.Marshal(c) // of strings and booleans: it cannot fail
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: map[string]string{AnnotationCertificate: string(recipe)},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// CertificateOf returns the certificate that the object asks for, and false if it asks
// for none. An annotation that cannot be read is an error.
func CertificateOf(obj Object) (Certificate, bool, error) {
	raw, asks := obj.GetAnnotations()[AnnotationCertificate]
	if !asks {
		return Certificate{}, false, nil
	}
	var c Certificate
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		return Certificate{}, true, fmt.Errorf("the annotation %s of %q cannot be read: %w",
			AnnotationCertificate, obj.GetName(), err)
	}
	return c, true, nil
}
