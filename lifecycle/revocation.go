package lifecycle

import (
	"crypto/sha256"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationRevocation on the Secret of an authority is the phase of its revocation: a
// [RevocationPhase].
const AnnotationRevocation = "governor.dev/revocation"

// Revocation in the request of an authority revokes every authority of the same Secret that
// is older than a time, e.g. because its key has leaked.
//
// The engine does not see processes that read ca.crt only at their start, or that keep
// connections open. The Planner reports on them in Trusted and Shown. Without that report,
// each of the two phases takes 30 days.
type Revocation struct {
	// Before is the time. A future time takes effect when it has come.
	Before metav1.Time `json:"before"`
	// Trusted is the [BundleDigest] of the ca.crt that every user of the authority has read.
	// It is empty if they differ, or if it is not known.
	Trusted string `json:"trusted,omitempty"`
	// Shown reports that no user presents a certificate of a revoked authority any more.
	Shown bool `json:"shown,omitempty"`
}

// RevocationPhase is the progress of the revocation of an authority.
type RevocationPhase string

// The phases, in their order.
const (
	// RevocationScheduled means that the time is in the future.
	RevocationScheduled RevocationPhase = "Scheduled"
	// RevocationDistributing means that every ca.crt contains another authority. It signs no
	// certificate before all users trust it.
	RevocationDistributing RevocationPhase = "Distributing"
	// RevocationReplacing means that the other authority has signed every certificate. The
	// revoked one stays trusted until no user presents its certificates.
	RevocationReplacing RevocationPhase = "Replacing"
	// RevocationComplete means that no ca.crt contains a revoked authority.
	RevocationComplete RevocationPhase = "Complete"
)

// RevocationOf returns the phase of the revocation before that time in the Secret of an
// authority, as last applied; empty if the Secret has another revocation or none.
func RevocationOf(secret Object, before *metav1.Time) RevocationPhase {
	c, asks, err := CertificateOf(secret)
	if before == nil || err != nil || !asks || c.Revocation == nil || !c.Revocation.Before.Equal(before) {
		return ""
	}
	return RevocationPhase(secret.GetAnnotations()[AnnotationRevocation])
}

// BundleDigest identifies a value of ca.crt.
func BundleDigest(bundle []byte) string {
	sum := sha256.Sum256(bundle)
	return fmt.Sprintf("%x", sum[:8])
}
