package lifecycle

import (
	"crypto/sha256"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationRevocation on the Secret of an authority says how far its revocation has
// come. Its values are those of [RevocationPhase].
const AnnotationRevocation = "governor.dev/revocation"

// Revocation in the recipe of an authority revokes every authority of the same Secret
// that was made before a time, for instance because its key has leaked.
//
// Processes that read ca.crt only at their start and keep connections open cannot be
// seen by the engine. The Planner reports about them in Trusted and Shown. Without its
// report each of the two steps takes 30 days.
type Revocation struct {
	// Before is the time. One in the future takes effect when it has come.
	Before metav1.Time `json:"before"`
	// Trusted is the [BundleDigest] of the ca.crt that every user of the authority has
	// read. It is empty if they differ, or if that is not known.
	Trusted string `json:"trusted,omitempty"`
	// Shown says that no user shows a certificate any more that a revoked authority has
	// signed.
	Shown bool `json:"shown,omitempty"`
}

// RevocationPhase is how far the revocation of an authority has come.
type RevocationPhase string

// The phases, in their order.
const (
	// RevocationScheduled means that the time is in the future.
	RevocationScheduled RevocationPhase = "Scheduled"
	// RevocationDistributing means that another authority is in every ca.crt. It does not
	// replace certificates before all users trust it.
	RevocationDistributing RevocationPhase = "Distributing"
	// RevocationReplacing means that the other authority has signed every certificate. The
	// revoked one is trusted until nobody shows its certificates.
	RevocationReplacing RevocationPhase = "Replacing"
	// RevocationComplete means that no ca.crt has a revoked authority.
	RevocationComplete RevocationPhase = "Complete"
)

// RevocationOf returns how far the revocation has come that the Secret of an authority
// was last provided with; empty if it is another one or none.
func RevocationOf(secret Object, before *metav1.Time) RevocationPhase {
	c, asks, err := CertificateOf(secret)
	if before == nil || err != nil || !asks || c.Revocation == nil || !c.Revocation.Before.Equal(before) {
		return ""
	}
	return RevocationPhase(secret.GetAnnotations()[AnnotationRevocation])
}

// BundleDigest tells the values of ca.crt apart.
func BundleDigest(bundle []byte) string {
	sum := sha256.Sum256(bundle)
	return fmt.Sprintf("%x", sum[:8])
}
