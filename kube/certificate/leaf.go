package certificate

import (
	"cmp"
	"crypto/x509"
	"net"
	"slices"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// leaf is the plan for the Secret of a certificate that is not an authority.
type leaf struct {
	request   Request
	authority *authority
	reason    string // to issue another; empty if the leaf is kept
	due       time.Time
	// keptRevoked means that the leaf is kept although a revoked authority has signed it.
	keptRevoked bool
}

func planLeaf(r Request, by *authority, now time.Time) leaf {
	l := leaf{request: r, authority: by}
	c, fault := readLeaf(r, by.trusted, now)
	switch {
	case fault != "":
		l.reason = fault
	case lifetimeOf(c).isEarly(now) && by.signer != nil && !lifetimeOfPair(by.signer).isEarly(now):
		l.reason = ReasonNotYetValid
	case by.revoked.hasSigned(c, by.trusted):
		l.planRevoked(c, now)
	case !lifetimeOf(c).isDue(now):
		l.due = lifetimeOf(c).due()
	case by.mayRenew(c, now):
		l.reason = ReasonNearEnd
	default:
		l.due = l.waitForSigner(c, now)
	}
	return l
}

// planRevoked has the leaf issued again by an authority that is not revoked, once all
// users of the leaf trust that authority.
func (l *leaf) planRevoked(inUse *x509.Certificate, now time.Time) {
	a := l.authority
	if a.signer != nil && !a.revoked.covers(a.signer.Certificate) && a.isSettled(a.signer, now) {
		l.reason = ReasonRevoked
		return
	}
	l.keptRevoked, l.due = true, l.waitForSigner(inUse, now)
}

// waitForSigner returns when to decide again about a leaf that cannot be renewed yet.
func (l *leaf) waitForSigner(inUse *x509.Certificate, now time.Time) time.Time {
	if l.authority.signer == nil {
		return inUse.NotAfter
	}
	return soonest(now, lifetimeOfPair(l.authority.signer).settledAt(authoritySettle), inUse.NotAfter)
}

// readLeaf returns the certificate of a leaf, or its fault. A certificate that is not valid
// yet has no fault: it proves which authorities its users trust.
func readLeaf(r Request, trusted []*x509.Certificate, now time.Time) (*x509.Certificate, string) {
	pair, fault := readPair(r.Data, lifecycle.KeyCertificate, lifecycle.KeyPrivate)
	if fault != "" {
		return nil, fault
	}
	c := pair.Certificate
	switch {
	case !hasNames(c, r.Certificate):
		return nil, ReasonWrongNames
	case c.IsCA || !sameSet(c.ExtKeyUsage, usages(r.Certificate)):
		return nil, ReasonWrongUsages
	case now.After(c.NotAfter):
		return nil, ReasonExpired
	case !isSignedBy(c, trusted, now):
		return nil, ReasonUntrusted
	}
	return c, ""
}

func isSignedBy(c *x509.Certificate, trusted []*x509.Certificate, now time.Time) bool {
	if now.Before(c.NotBefore) {
		now = c.NotBefore
	}
	roots := x509.NewCertPool()
	for _, t := range trusted {
		roots.AddCert(t)
	}
	_, err := c.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err == nil
}

func hasNames(c *x509.Certificate, wanted lifecycle.Certificate) bool {
	return c.Subject.CommonName == wanted.CommonName && sameSet(c.DNSNames, wanted.DNSNames) &&
		sameSet(ipStrings(c.IPAddresses), ipStrings(addresses(wanted))) && len(c.URIs)+len(c.EmailAddresses) == 0
}

func addresses(c lifecycle.Certificate) []net.IP {
	all := make([]net.IP, 0, len(c.IPAddresses))
	for _, a := range c.IPAddresses {
		all = append(all, net.ParseIP(a))
	}
	return all
}

func ipStrings(all []net.IP) []string {
	text := make([]string, 0, len(all))
	for _, ip := range all {
		text = append(text, ip.String())
	}
	return text
}

func usages(c lifecycle.Certificate) []x509.ExtKeyUsage {
	var all []x509.ExtKeyUsage
	if c.Server {
		all = append(all, x509.ExtKeyUsageServerAuth)
	}
	if c.Client {
		all = append(all, x509.ExtKeyUsageClientAuth)
	}
	return all
}

func sameSet[E cmp.Ordered](a, b []E) bool { return slices.Equal(sortedSet(a), sortedSet(b)) }

func sortedSet[E cmp.Ordered](all []E) []E {
	return slices.Compact(slices.Sorted(slices.Values(all)))
}
