// Package certificate fills in the certificates that Secrets ask for by recipe, see
// [lifecycle.Certificate].
//
// [Judge] looks at the recipes and at what the Secrets hold, and says what is to be
// made and why; it is pure. [Plan.Make] makes it. [Issuer] does both for an owner's
// Secrets before they are applied, and remembers a verdict until something changes.
//
// Secrets are written one after the other, read late, and some are read only at the
// start of a process. So that at every moment each certificate is trusted by all who
// hold one of the same authority, an authority is followed by another in an order:
//
//	prepare   the next authority is in ca.crt everywhere, and signs nothing
//	settle    whoever reads ca.crt only at its start gets the time to start again
//	promote   the next authority signs; the former one stays in ca.crt until it
//	          expires, for what it has signed
//
// An authority that is lost cannot prepare anything. Another takes its place and
// signs at once what nobody could use anyway: what is missing or damaged. The lost
// one is still in the ca.crt of what it has signed, and from there in ca.crt
// everywhere; so that stays in use, and is renewed when the new one has settled.
//
// An authority that is revoked, see [lifecycle.Revocation], takes the same way with two
// differences. Its users report when they trust the next one, so that nobody waits for
// 30 days. And it leaves ca.crt as soon as nobody shows a certificate of it any more. From
// then on it is refused wherever it turns up, also in a Secret that a user restores.
// Deleting its Secret does not revoke it.
package certificate

import (
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

const (
	// leafLife is long because whoever copied a client's certificate, or reads it at
	// the start only, has the last third of it, four months, to notice its renewal.
	// Nothing is gained by less: a key that leaked is revoked with its authority, not
	// by waiting.
	leafLife = 365 * 24 * time.Hour
	// authorityLife is long because a new authority costs its users a restart.
	authorityLife = 10 * 365 * 24 * time.Hour
	// settling is how long those who read ca.crt only at their start get to start
	// again. An authority has more than three years left then, and a leaf four months.
	settling = 30 * 24 * time.Hour
)

// Keys of an authority's Secret for the one that follows it.
const (
	keyNextCertificate = "next.crt"
	keyNextPrivate     = "next.key"
)

// keys are all that belongs to the issuer in a Secret. What else is there is not
// touched.
var keys = []string{
	lifecycle.KeyCertificate, lifecycle.KeyPrivate, lifecycle.KeyAuthorities, keyNextCertificate, keyNextPrivate,
}

// Reasons for which something is made.
const (
	// Missing means that the Secret has none.
	Missing = "Missing"
	// Unreadable means that the certificate or its key is damaged, or they do not
	// belong together.
	Unreadable = "Unreadable"
	// NotAnAuthority means that the certificate cannot sign others.
	NotAnAuthority = "NotAnAuthority"
	// WrongNames means that the recipe has other names.
	WrongNames = "WrongNames"
	// WrongUsages means that the recipe has other usages.
	WrongUsages = "WrongUsages"
	// Untrusted means that no authority of the Secret has signed it.
	Untrusted = "Untrusted"
	// Expired means that nobody accepts it any more.
	Expired = "Expired"
	// NearEnd means that two thirds of its life are over.
	NearEnd = "NearEnd"
	// Settled means that everybody has had the time to trust the next authority.
	Settled = "Settled"
	// Revoked means that the authority was made before the time of a revocation.
	Revoked = "Revoked"
)
