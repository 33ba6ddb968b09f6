package lifecycle

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationCertificate on a Secret of Resources asks for a certificate. Its value is a
// [Certificate] as JSON. [Certificate.Secret] writes it.
const AnnotationCertificate = "governor.dev/certificate"

// Keys of a Secret with a certificate, all PEM. cert-manager uses the same keys, so either
// Secret can be mounted in place of the other.
const (
	// KeyCertificate is the certificate.
	KeyCertificate = corev1.TLSCertKey
	// KeyPrivate is its private key.
	KeyPrivate = corev1.TLSPrivateKeyKey
	// KeyAuthorities are all trusted authorities: the one that signs, the one that signs
	// next, and former ones until they expire or are revoked. The same authorities are
	// always the same bytes, so a digest of the value shows whether trust has changed.
	KeyAuthorities = corev1.ServiceAccountRootCAKey
)

// Certificate requests a certificate. It contains no secret, so that a Planner stays pure:
// the engine adds the keys to the Secret before it applies it.
//
// A certificate is valid for one year and an authority for ten. The engine renews both
// after two thirds of that time. It issues a certificate again at once if it is missing,
// damaged or different from the request. It replaces a lost authority, and keeps trusting
// the lost one for what it has signed. A [Revocation] ends that trust, e.g. after a leak.
//
// A process that reads the Secret only at its start must restart after a change of ca.crt.
// The next authority signs nothing for 30 days after that change.
type Certificate struct {
	// Authority is the name of the Secret that signs, which Resources must return, too. It
	// is empty for an authority, which has its own certificate in both tls.crt and ca.crt.
	Authority string `json:"authority,omitempty"`
	// CommonName of the subject. A changed common name does not replace an authority.
	CommonName string `json:"commonName"`
	// DNSNames and IPAddresses that the certificate is valid for.
	DNSNames    []string `json:"dnsNames,omitempty"`
	IPAddresses []string `json:"ipAddresses,omitempty"`
	// Server and Client are the allowed uses.
	Server bool `json:"server,omitempty"`
	Client bool `json:"client,omitempty"`
	// Revocation of former authorities. It applies to an authority only.
	Revocation *Revocation `json:"revocation,omitempty"`
}

// Secret returns the Secret that asks for the certificate, to be returned from
// [Planner.Resources].
func (c Certificate) Secret(name string, labels map[string]string) *corev1.Secret {
	request, _ := json.Marshal(c) // strings and booleans: it cannot fail
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: map[string]string{AnnotationCertificate: string(request)},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// CertificateOf returns the certificate that the object requests, and false if it requests
// none. It returns an error for an unreadable annotation.
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
