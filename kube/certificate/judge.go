package certificate

import (
	"bytes"
	"crypto/x509"
	"time"

	"github.com/governor-dev/governor/kube/pki"
	"github.com/governor-dev/governor/lifecycle"
)

// Order is one Secret that asks for a certificate.
type Order struct {
	Name   string
	Recipe lifecycle.Certificate
	Data   map[string][]byte // what it holds; empty if it does not exist
}

// Plan is what is to be made.
type Plan struct {
	authorities []*authority
	leaves      []leaf

	// Due is when to judge again if nothing changes before; zero if there are no
	// orders.
	Due time.Time
}

// Judge decides about all Secrets of one owner. The authority of every leaf must be
// among the orders.
func Judge(orders []Order, now time.Time) Plan {
	p := Plan{}
	byName := map[string]*authority{}
	for _, o := range orders {
		if o.Recipe.Authority == "" {
			a := judgeAuthority(o, signedBy(o.Name, orders), now)
			p.authorities, byName[o.Name] = append(p.authorities, a), a
			p.Due = soonest(now, p.Due, a.due)
		}
	}
	for _, o := range orders {
		if o.Recipe.Authority != "" {
			l := judgeLeaf(o, byName[o.Recipe.Authority], now)
			l.by.inUse = l.by.inUse || l.outlives
			p.leaves = append(p.leaves, l)
			p.Due = soonest(now, p.Due, l.due)
		}
	}
	return p
}

func signedBy(authority string, orders []Order) []Order {
	var leaves []Order
	for _, o := range orders {
		if o.Recipe.Authority == authority {
			leaves = append(leaves, o)
		}
	}
	return leaves
}

// change is what happens to an authority, as it follows the name of its Secret.
type change string

const (
	founded  change = "has a new authority, good"
	prepared change = "prepares its next authority, good"
	promoted change = "begins to sign with its next authority, good"
)

// authority is one of them as it is and as it shall be.
type authority struct {
	order   Order
	leaves  []Order
	signs   *pki.Pair           // nil if it is to be made
	next    *pki.Pair           // nil if there is none, or it is to be made
	trusted []*x509.Certificate // all but what is to be made
	change  change              // empty if there is none
	reason  string              // for the change
	due     time.Time
	revoked revocation
	inUse   bool // a leaf that is kept has the signature of a revoked one
}

func judgeAuthority(o Order, leaves []Order, now time.Time) *authority {
	a := &authority{order: o, leaves: leaves, revoked: revocationOf(o, leaves, now)}
	var fault string
	a.signs, fault = readAuthority(o.Data, lifecycle.KeyCertificate, lifecycle.KeyPrivate, now)
	a.next, _ = readAuthority(o.Data, keyNextCertificate, keyNextPrivate, now)
	if a.signs != nil && a.revoked.refuses(a.signs.Certificate) {
		a.signs, fault = nil, Revoked
	}
	if a.next != nil && a.revoked.covers(a.next.Certificate) {
		a.next = nil
	}
	a.trusted = trustedBy(a, now)
	switch {
	case fault != "" && a.next != nil:
		a.promote(fault)
	case fault != "":
		a.change, a.reason = founded, fault
	case a.next != nil && a.settled(a.next, now):
		a.promote(a.outgoing())
	case a.next == nil && a.revoked.covers(a.signs.Certificate):
		a.change, a.reason = prepared, Revoked
	case a.next == nil && !now.Before(dueOf(a.signs.Certificate)):
		a.change, a.reason = prepared, NearEnd
	}
	a.due = a.nextLook(now)
	return a
}

// outgoing is why the next one takes over.
func (a *authority) outgoing() string {
	if a.revoked.covers(a.signs.Certificate) {
		return Revoked
	}
	return Settled
}

func (a *authority) promote(reason string) {
	a.signs, a.next = a.next, nil
	a.change, a.reason = promoted, reason
}

// nextLook is when something of the authority is to be changed by time alone: it is
// due, its follower has settled, or one that is trusted expires.
func (a *authority) nextLook(now time.Time) time.Time {
	look := soonest(now, a.revoked.begins, a.revoked.forgotten)
	for _, c := range a.trusted {
		look = soonest(now, look, c.NotAfter)
	}
	if a.next != nil {
		return soonest(now, look, settledAt(a.next))
	}
	if a.signs != nil {
		return soonest(now, look, dueOf(a.signs.Certificate))
	}
	return look
}

// settled reports whether the pair is trusted by everyone who holds a certificate of
// this authority.
func (a *authority) settled(pair *pki.Pair, now time.Time) bool {
	if now.Before(settledAt(pair)) && !a.revoked.read(pair.Certificate) {
		return false
	}
	for _, l := range a.leaves {
		if len(l.Data) > 0 && !contains(parse(l.Data[lifecycle.KeyAuthorities]), pair.Certificate) {
			return false
		}
	}
	return true
}

func settledAt(pair *pki.Pair) time.Time {
	return pair.Certificate.NotBefore.Add(pki.Skew + settling)
}

// mayRenew reports whether a leaf that is in use may be followed by one that the
// authority signs now: its users trust the signer already.
func (a *authority) mayRenew(inUse *x509.Certificate, now time.Time) bool {
	if a.signs == nil {
		return false
	}
	return inUse.CheckSignatureFrom(a.signs.Certificate) == nil || a.settled(a.signs, now)
}

// leaf is the certificate of one that is no authority.
type leaf struct {
	order  Order
	by     *authority
	reason string // to make another; empty if it is kept
	due    time.Time
	// outlives says that it is kept although a revoked authority has signed it.
	outlives bool
}

func judgeLeaf(o Order, by *authority, now time.Time) leaf {
	l := leaf{order: o, by: by}
	c, fault := readLeaf(o, by.trusted, now)
	switch {
	case fault != "":
		l.reason = fault
	case by.revoked.signed(c, by.trusted):
		l.replace(c, now)
	case now.Before(dueOf(c)):
		l.due = dueOf(c)
	case by.mayRenew(c, now):
		l.reason = NearEnd
	case by.signs != nil:
		l.due = soonest(now, settledAt(by.signs), c.NotAfter)
	default:
		l.due = c.NotAfter
	}
	return l
}

// dueOf is after two thirds of a life.
func dueOf(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3)
}

// soonest returns the earliest of the times that are still to come, or zero.
func soonest(now time.Time, times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

func contains(all []*x509.Certificate, c *x509.Certificate) bool {
	for _, other := range all {
		if bytes.Equal(other.Raw, c.Raw) {
			return true
		}
	}
	return false
}
