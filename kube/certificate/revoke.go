package certificate

import (
	"crypto/x509"
	"slices"
	"time"

	"github.com/governor-dev/governor/kube/pki"
	"github.com/governor-dev/governor/lifecycle"
)

// revocation is what an authority's recipe revokes; the zero value revokes nothing.
type revocation struct {
	declared bool
	begins   time.Time // when it takes effect, if that is still to come
	before   time.Time // zero until it takes effect
	shown    bool
	// forgotten is when nobody is expected to show a former certificate any more, without
	// a report; zero if that is not known.
	forgotten time.Time
	// trusted are the authorities that every user has read; nil if that is not known.
	trusted []*x509.Certificate
	// carried are all authorities that leaves have in their ca.crt.
	carried []*x509.Certificate
}

// revocationOf ignores a time in the future: it would revoke what is made now to replace
// what it revokes.
func revocationOf(o Order, leaves []Order, now time.Time) revocation {
	asked := o.Recipe.Revocation
	if asked == nil {
		return revocation{}
	}
	if asked.Before.After(now) {
		return revocation{declared: true, begins: asked.Before.Time}
	}
	r := revocation{declared: true, before: asked.Before.Time, shown: asked.Shown}
	if bundle := o.Data[lifecycle.KeyAuthorities]; asked.Trusted == lifecycle.BundleDigest(bundle) {
		r.trusted = parse(bundle)
	}
	for _, l := range leaves {
		r.carried = append(r.carried, parse(l.Data[lifecycle.KeyAuthorities])...)
	}
	r.forgotten = r.forgottenAt(leaves)
	r.shown = r.shown || !r.forgotten.IsZero() && !now.Before(r.forgotten)
	return r
}

// forgottenAt is when every leaf has long enough had a certificate that no revoked
// authority has signed; zero if one has none.
func (r revocation) forgottenAt(leaves []Order) (last time.Time) {
	for _, l := range leaves {
		all := parse(l.Data[lifecycle.KeyCertificate])
		if len(all) == 0 || r.signed(all[0], r.carried) {
			return time.Time{}
		}
		if at := all[0].NotBefore.Add(pki.Skew + settling); at.After(last) {
			last = at
		}
	}
	return last
}

// covers reports whether the authority was made before the time. Certificates begin
// [pki.Skew] before they are made.
func (r revocation) covers(c *x509.Certificate) bool {
	return c.NotBefore.Add(pki.Skew).Before(r.before)
}

// refuses reports whether the authority is revoked and nothing that is in use depends on
// it. One that no leaf trusts left ca.crt before, so it comes from a Secret that
// somebody has restored: the authority's own Secret is written before those of its leaves.
func (r revocation) refuses(c *x509.Certificate) bool {
	return r.covers(c) && (r.shown || !contains(r.carried, c))
}

// read reports whether every user trusts the authority.
func (r revocation) read(c *x509.Certificate) bool { return contains(r.trusted, c) }

// signed reports whether a revoked one of the authorities has signed the certificate.
func (r revocation) signed(c *x509.Certificate, by []*x509.Certificate) bool {
	return slices.ContainsFunc(by, func(a *x509.Certificate) bool {
		return r.covers(a) && c.CheckSignatureFrom(a) == nil
	})
}

// replace has another certificate made by an authority that is not revoked, when all
// users of the leaf trust that.
func (l *leaf) replace(inUse *x509.Certificate, now time.Time) {
	signs := l.by.signs
	switch {
	case signs == nil:
		l.outlives, l.due = true, inUse.NotAfter
	case l.by.revoked.covers(signs.Certificate) || !l.by.settled(signs, now):
		l.outlives, l.due = true, soonest(now, settledAt(signs), inUse.NotAfter)
	default:
		l.reason = Revoked
	}
}

// phase is how far the revocation has come when the plan is carried out; empty if none
// is declared.
func (a *authority) phase(now time.Time) lifecycle.RevocationPhase {
	switch {
	case !a.revoked.declared:
		return ""
	case a.revoked.begins.After(now):
		return lifecycle.RevocationScheduled
	case !slices.ContainsFunc(a.trusted, a.revoked.covers):
		return lifecycle.RevocationComplete
	case a.inUse || a.revoked.covers(a.signs.Certificate):
		return lifecycle.RevocationDistributing
	}
	return lifecycle.RevocationReplacing
}
