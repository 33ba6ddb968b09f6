// Package certificate decides when certificates are issued, rotated, and revoked.
//
// The decisions are pure functions over the stored data and a clock. A rotation is
// decided in one place, rotation.go, for two kinds of Secrets:
//
//   - [Decide] plans the Secrets of one application: authorities and the leaves that they
//     sign, see [lifecycle.Certificate]. [Plan.Execute] issues what the plan lacks. [Issuer]
//     does both for the Secrets of an owner before the engine applies them.
//   - [Standalone] plans one Secret that has a server certificate and its own authority,
//     such as the Secret of the operator's webhooks.
//
// Users read a Secret late, and some read it only when they start. A certificate is
// therefore followed by another in steps, and each step keeps the trust of all users:
//
//	Prepare   the next certificate is stored, and its authority is in ca.crt
//	settle    the users get time to read ca.crt
//	Promote   the next certificate is in use; former authorities stay in ca.crt until
//	          they expire
//
// Replace skips these steps. It is for a certificate that no user can use: missing,
// damaged, expired, or signed by an untrusted authority.
//
// A lost authority of an application cannot be followed in steps. A new authority replaces
// it and signs missing and damaged leaves at once. The lost authority stays in ca.crt while
// its leaves are in use. Those leaves are renewed once the new authority has settled.
//
// A revoked authority, see [lifecycle.Revocation], is rotated with two differences. Its
// users report when they trust the next authority, so that the rotation need not wait. And
// it leaves ca.crt as soon as no user presents a certificate that it has signed. From then
// on it is refused, also in a Secret that a user restores.
package certificate

import (
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

const (
	// leafLife is long because some users read a leaf only when they start. Its last third
	// gives them four months. A shorter life gains nothing: a leaked key is revoked with
	// its authority.
	leafLife = 365 * 24 * time.Hour
	// authorityLife is long because a new authority costs its users a restart.
	authorityLife = 10 * 365 * 24 * time.Hour
	// authoritySettle is the time for users that read ca.crt only when they start. At its
	// end an authority has more than three years left, and a leaf has four months.
	authoritySettle = 30 * 24 * time.Hour
	// standaloneLife is the life of a standalone certificate and of its authority.
	standaloneLife = 90 * 24 * time.Hour
	// standaloneSettle is the time for API servers to read a caBundle. They need seconds.
	standaloneSettle = 10 * time.Minute
)

// Keys of a Secret for the certificate that follows the current one.
const (
	keyNextCertificate = "next.crt"
	keyNextPrivate     = "next.key"
)

// ownedKeys are the keys of a Secret that this package writes. It keeps all other keys.
var ownedKeys = []string{
	lifecycle.KeyCertificate, lifecycle.KeyPrivate, lifecycle.KeyAuthorities, keyNextCertificate, keyNextPrivate,
}

// Reasons for an action.
const (
	// ReasonMissing means that the Secret has no certificate.
	ReasonMissing = "Missing"
	// ReasonUnreadable means that the certificate or its key is damaged, or that they do
	// not belong together.
	ReasonUnreadable = "Unreadable"
	// ReasonNotAnAuthority means that the certificate cannot sign others.
	ReasonNotAnAuthority = "NotAnAuthority"
	// ReasonWrongNames means that the request has other names.
	ReasonWrongNames = "WrongNames"
	// ReasonWrongUsages means that the request has other usages.
	ReasonWrongUsages = "WrongUsages"
	// ReasonUntrusted means that no authority of the Secret has signed the certificate.
	ReasonUntrusted = "Untrusted"
	// ReasonNotYetValid means that the validity begins later than clocks may differ.
	ReasonNotYetValid = "NotYetValid"
	// ReasonExpired means that the certificate is not valid at this time.
	ReasonExpired = "Expired"
	// ReasonNearEnd means that two thirds of the certificate's life are over.
	ReasonNearEnd = "NearEnd"
	// ReasonSettled means that all users trust the next authority.
	ReasonSettled = "Settled"
	// ReasonRevoked means that the authority was issued before the time of a revocation.
	ReasonRevoked = "Revoked"
)
