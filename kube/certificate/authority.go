package certificate

import (
	"crypto/x509"
	"slices"
	"time"

	"github.com/governor-dev/governor/kube/pki"
	"github.com/governor-dev/governor/lifecycle"
)

// authority is the plan for the Secret of one authority.
type authority struct {
	request Request
	leaves  []Request
	signer  *pki.Pair           // nil if it must be issued
	next    *pki.Pair           // nil if there is none, or if it must be issued
	trusted []*x509.Certificate // without those that must be issued
	action  Action
	reason  string
	due     time.Time
	revoked revocation
	inUse   bool // a leaf that a revoked authority has signed is kept
}

func planAuthority(r Request, leaves []Request, now time.Time) *authority {
	a := &authority{request: r, leaves: leaves, revoked: revocationOf(r, leaves, now)}
	var fault string
	a.signer, fault = readAuthority(r.Data, lifecycle.KeyCertificate, lifecycle.KeyPrivate, now)
	a.next, _ = readAuthority(r.Data, keyNextCertificate, keyNextPrivate, now)
	if a.signer != nil && a.revoked.refuses(a.signer.Certificate) {
		a.signer, fault = nil, ReasonRevoked
	}
	if a.next != nil && a.revoked.covers(a.next.Certificate) {
		a.next = nil
	}
	a.trusted = a.collectTrusted(now)
	a.action, a.reason = a.rotation(fault, now).decide(now)
	if a.action == ActionPromote {
		a.signer, a.next = a.next, nil
	}
	a.due = a.nextDecision(now)
	return a
}

// readAuthority returns the pair of an authority, or its fault.
func readAuthority(data map[string][]byte, certificate, key string, now time.Time) (*pki.Pair, string) {
	pair, fault := readPair(data, certificate, key)
	switch {
	case fault != "":
		return nil, fault
	case !canSign(pair.Certificate):
		return nil, ReasonNotAnAuthority
	case now.After(pair.Certificate.NotAfter):
		return nil, ReasonExpired
	}
	return pair, ""
}

func (a *authority) rotation(fault string, now time.Time) rotation {
	return rotation{
		current: lifetimeOfPair(a.signer),
		fault:   fault,
		revoked: a.signer != nil && a.revoked.covers(a.signer.Certificate),
		next:    lifetimeOfPair(a.next),
		settled: a.next != nil && a.isSettled(a.next, now),
	}
}

// nextDecision returns when the passing of time alone changes the plan.
func (a *authority) nextDecision(now time.Time) time.Time {
	times := []time.Time{a.revoked.begins, a.revoked.unusedAt, a.rotation("", now).nextStep(authoritySettle)}
	for _, c := range a.trusted {
		times = append(times, c.NotAfter)
	}
	return soonest(now, times...)
}

// isSettled reports whether every user of this authority's leaves trusts the pair.
func (a *authority) isSettled(pair *pki.Pair, now time.Time) bool {
	early := now.Before(lifetimeOfPair(pair).settledAt(authoritySettle))
	if early && !a.revoked.isReadByAll(pair.Certificate) {
		return false
	}
	return !slices.ContainsFunc(a.leaves, func(l Request) bool {
		return len(l.Data) > 0 && !contains(parseBundle(l.Data[lifecycle.KeyAuthorities]), pair.Certificate)
	})
}

// mayRenew reports whether the authority may sign the successor of a leaf in use: the
// leaf's users trust the signer already.
func (a *authority) mayRenew(inUse *x509.Certificate, now time.Time) bool {
	if a.signer == nil {
		return false
	}
	return inUse.CheckSignatureFrom(a.signer.Certificate) == nil || a.isSettled(a.signer, now)
}

// collectTrusted returns the authorities for ca.crt. The authority's own Secret lists them.
// If it is damaged or missing, the Secrets of the leaves do. They also do during a
// revocation, because a user may have restored an older Secret of the authority.
func (a *authority) collectTrusted(now time.Time) []*x509.Certificate {
	all := parseBundle(a.request.Data[lifecycle.KeyAuthorities])
	if a.signer == nil || !contains(all, a.signer.Certificate) || slices.ContainsFunc(all, a.revoked.covers) {
		for _, l := range a.leaves {
			all = append(all, trustedByLeaf(l, now)...)
		}
	}
	for _, pair := range []*pki.Pair{a.signer, a.next} {
		if pair != nil {
			all = append(all, pair.Certificate)
		}
	}
	return sortUnique(slices.DeleteFunc(unexpired(all, now), func(c *x509.Certificate) bool {
		return !canSign(c) || a.revoked.refuses(c)
	}))
}

// trustedByLeaf returns the authorities in the ca.crt of a leaf. It returns none if they did
// not sign the leaf: a user has edited that Secret, so it cannot add an authority.
func trustedByLeaf(r Request, now time.Time) []*x509.Certificate {
	all := parseBundle(r.Data[lifecycle.KeyAuthorities])
	if _, fault := readLeaf(r, all, now); fault != "" {
		return nil
	}
	return all
}
