package certificate

import (
	"crypto/x509"
	"time"

	"github.com/governor-dev/governor/kube/pki"
)

// Action is the next step of a rotation.
type Action string

const (
	// ActionKeep means that nothing changes before the next decision.
	ActionKeep Action = "Keep"
	// ActionPrepare means that the next certificate is issued, and its authority trusted.
	ActionPrepare Action = "Prepare"
	// ActionPromote means that the next certificate becomes the current one.
	ActionPromote Action = "Promote"
	// ActionReplace means that the current certificate is unusable, and another is issued.
	ActionReplace Action = "Replace"
)

// rotation is the state of a certificate in use and of the one that follows it.
type rotation struct {
	current *lifetime // nil if the certificate is unusable
	fault   string    // reason why it is unusable
	revoked bool      // the current certificate must be followed now
	next    *lifetime // nil if no usable next certificate is stored
	settled bool      // all users trust the next certificate
}

// decide returns the action and its reason. It is the only place that decides a rotation.
func (r rotation) decide(now time.Time) (Action, string) {
	switch {
	case r.fault != "" && r.next != nil:
		return ActionPromote, r.fault
	case r.fault != "":
		return ActionReplace, r.fault
	case r.next != nil && !r.settled:
		return ActionKeep, ""
	case r.next != nil && !r.revoked:
		return ActionPromote, ReasonSettled
	case r.next != nil:
		return ActionPromote, ReasonRevoked
	case r.revoked:
		return ActionPrepare, ReasonRevoked
	case r.current.isDue(now):
		return ActionPrepare, ReasonNearEnd
	}
	return ActionKeep, ""
}

// nextStep returns when the passing of time allows the next step; zero if it never does.
func (r rotation) nextStep(settle time.Duration) time.Time {
	switch {
	case r.next != nil:
		return r.next.settledAt(settle)
	case r.current != nil:
		return r.current.due()
	}
	return time.Time{}
}

// lifetime is the period in which a certificate is valid.
type lifetime struct{ begin, end time.Time }

func lifetimeOf(c *x509.Certificate) *lifetime { return &lifetime{c.NotBefore, c.NotAfter} }

// lifetimeOfPair returns nil if there is no pair.
func lifetimeOfPair(p *pki.Pair) *lifetime {
	if p == nil {
		return nil
	}
	return lifetimeOf(p.Certificate)
}

// due returns when the certificate is renewed: after two thirds of its life. The last third
// is for anything that delays the renewal.
func (l *lifetime) due() time.Time { return l.begin.Add(l.end.Sub(l.begin) * 2 / 3) }

func (l *lifetime) isDue(now time.Time) bool { return !now.Before(l.due()) }

// isEarly reports that the certificate was issued with a clock that was ahead of now. Its users
// refuse it until its validity begins, which may take months.
func (l *lifetime) isEarly(now time.Time) bool { return l.begin.After(now.Add(pki.Skew)) }

// issuedAt returns when the certificate was issued. It is valid since [pki.Skew] before.
func (l *lifetime) issuedAt() time.Time { return l.begin.Add(pki.Skew) }

// settledAt returns when every user has had the time to trust the certificate.
func (l *lifetime) settledAt(settle time.Duration) time.Time { return l.issuedAt().Add(settle) }

// soonest returns the earliest of the times after now, or zero.
func soonest(now time.Time, times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
