package certificate

import (
	"crypto/x509"
	"slices"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// revocation is what an authority's request revokes. The zero value revokes nothing.
type revocation struct {
	declared bool
	begins   time.Time // when it takes effect, if that is in the future
	before   time.Time // zero until it takes effect
	unused   bool      // no user presents a certificate of a revoked authority
	// unusedAt is when that is assumed without a report; zero if it is not known.
	unusedAt time.Time
	// readByAll are the authorities that every user has read; nil if that is not known.
	readByAll []*x509.Certificate
	// inLeaves are all authorities in the ca.crt of a leaf.
	inLeaves []*x509.Certificate
}

// revocationOf ignores a time in the future. Such a revocation would also cover the
// authority that is issued now to replace the revoked one.
func revocationOf(r Request, leaves []Request, now time.Time) revocation {
	declared := r.Certificate.Revocation
	if declared == nil {
		return revocation{}
	}
	if declared.Before.After(now) {
		return revocation{declared: true, begins: declared.Before.Time}
	}
	v := revocation{declared: true, before: declared.Before.Time}
	if bundle := r.Data[lifecycle.KeyAuthorities]; declared.Trusted == lifecycle.BundleDigest(bundle) {
		v.readByAll = parseBundle(bundle)
	}
	for _, l := range leaves {
		v.inLeaves = append(v.inLeaves, parseBundle(l.Data[lifecycle.KeyAuthorities])...)
	}
	v.unusedAt = v.assumedUnusedAt(leaves)
	v.unused = declared.Shown || !v.unusedAt.IsZero() && !now.Before(v.unusedAt)
	return v
}

// assumedUnusedAt returns when every user has had the time to read a leaf that no revoked
// authority has signed. It is zero if one leaf is not such a leaf.
func (v revocation) assumedUnusedAt(leaves []Request) (last time.Time) {
	for _, l := range leaves {
		all := parseBundle(l.Data[lifecycle.KeyCertificate])
		if len(all) == 0 || v.hasSigned(all[0], v.inLeaves) {
			return time.Time{}
		}
		if at := lifetimeOf(all[0]).settledAt(authoritySettle); at.After(last) {
			last = at
		}
	}
	return last
}

// covers reports whether the authority was issued before the time of the revocation.
func (v revocation) covers(c *x509.Certificate) bool {
	return lifetimeOf(c).issuedAt().Before(v.before)
}

// refuses reports whether the authority is revoked, and no certificate in use depends on
// it. A revoked authority that no leaf trusts has left ca.crt before, so it comes from a
// restored Secret: the authority's Secret is written before the Secrets of its leaves.
func (v revocation) refuses(c *x509.Certificate) bool {
	return v.covers(c) && (v.unused || !contains(v.inLeaves, c))
}

// isReadByAll reports whether every user trusts the authority.
func (v revocation) isReadByAll(c *x509.Certificate) bool { return contains(v.readByAll, c) }

// hasSigned reports whether a revoked one of the authorities has signed the certificate.
func (v revocation) hasSigned(c *x509.Certificate, authorities []*x509.Certificate) bool {
	return slices.ContainsFunc(authorities, func(a *x509.Certificate) bool {
		return v.covers(a) && c.CheckSignatureFrom(a) == nil
	})
}

// phase returns the phase of the revocation after the plan is executed. It is empty if no
// revocation is declared.
func (a *authority) phase(now time.Time) lifecycle.RevocationPhase {
	switch {
	case !a.revoked.declared:
		return ""
	case a.revoked.begins.After(now):
		return lifecycle.RevocationScheduled
	case !slices.ContainsFunc(a.trusted, a.revoked.covers):
		return lifecycle.RevocationComplete
	case a.inUse || a.revoked.covers(a.signer.Certificate):
		return lifecycle.RevocationDistributing
	}
	return lifecycle.RevocationReplacing
}
