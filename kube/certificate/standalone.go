package certificate

import (
	"crypto/x509"
	"errors"
	"time"

	"github.com/governor-dev/governor/kube/pki"
	"github.com/governor-dev/governor/lifecycle"
)

// Standalone is one Secret with a server certificate and its own authority. The key of the
// authority is not stored, so it signs nothing else.
type Standalone struct {
	// CommonName is that of the authority.
	CommonName string
	// Names are the DNS names of the server.
	Names []string
}

// Decision is the next step of a standalone certificate.
type Decision struct {
	Action Action
	Reason string
	Next   time.Time // when to decide again; set for ActionKeep
}

// Decide decides about the data of the Secret, which is nil if it does not exist. The
// bundles are those that the clients trust at present. Without clients there are none.
func (s Standalone) Decide(data map[string][]byte, bundles [][]byte, now time.Time) Decision {
	current, fault := s.read(data, lifecycle.KeyCertificate, lifecycle.KeyPrivate, now)
	r := rotation{current: current, fault: fault}
	if fault == "" {
		r.next, _ = s.read(data, keyNextCertificate, keyNextPrivate, now)
	}
	r.settled = r.next != nil && !now.Before(r.next.settledAt(standaloneSettle)) &&
		s.isTrusted(data[keyNextCertificate], bundles, now)
	action, reason := r.decide(now)
	if action != ActionKeep {
		return Decision{Action: action, Reason: reason}
	}
	return Decision{Action: action, Next: soonest(now, r.nextStep(standaloneSettle), current.end)}
}

// Execute returns the data of the Secret after the decision.
func (s Standalone) Execute(d Decision, data map[string][]byte, now time.Time) (map[string][]byte, error) {
	switch d.Action {
	case ActionKeep:
		return data, nil
	case ActionPrepare:
		return s.prepare(data, now)
	case ActionPromote:
		return map[string][]byte{
			lifecycle.KeyCertificate: data[keyNextCertificate], lifecycle.KeyPrivate: data[keyNextPrivate],
			lifecycle.KeyAuthorities: data[lifecycle.KeyAuthorities],
		}, nil
	}
	return s.Issue(now)
}

// Issue returns the data of a new Secret.
func (s Standalone) Issue(now time.Time) (map[string][]byte, error) {
	leaf, authority, err := s.issue(now)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{lifecycle.KeyAuthorities: pki.Encode(authority)}
	return data, store(data, lifecycle.KeyCertificate, lifecycle.KeyPrivate, leaf)
}

func (s Standalone) prepare(data map[string][]byte, now time.Time) (map[string][]byte, error) {
	leaf, authority, err := s.issue(now)
	if err != nil {
		return nil, err
	}
	trusted := append(unexpired(parseBundle(data[lifecycle.KeyAuthorities]), now), authority)
	prepared := map[string][]byte{
		lifecycle.KeyCertificate: data[lifecycle.KeyCertificate], lifecycle.KeyPrivate: data[lifecycle.KeyPrivate],
		lifecycle.KeyAuthorities: pki.Encode(sortUnique(trusted)...),
	}
	return prepared, store(prepared, keyNextCertificate, keyNextPrivate, leaf)
}

// issue returns a new certificate and its authority, whose key it drops.
func (s Standalone) issue(now time.Time) (*pki.Pair, *x509.Certificate, error) {
	authority, err := pki.Issue(authorityTemplate(lifecycle.Certificate{CommonName: s.CommonName}, standaloneLife, now), nil)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := pki.Issue(s.template(authority.Certificate, now), authority)
	return leaf, authority.Certificate, err
}

func (s Standalone) template(authority *x509.Certificate, now time.Time) *x509.Certificate {
	c := lifecycle.Certificate{CommonName: s.Names[0], DNSNames: s.Names, Server: true}
	return leafTemplate(c, standaloneLife, authority.NotAfter, now)
}

// read returns when the pair under the two keys is valid, or its fault.
func (s Standalone) read(data map[string][]byte, certificate, key string, now time.Time) (*lifetime, string) {
	_, fault := readPair(data, certificate, key)
	if fault != "" {
		return nil, fault
	}
	life, err := s.verify(data[certificate], data[lifecycle.KeyAuthorities], now)
	if err != nil {
		return nil, verifyFault(err)
	}
	return life, ""
}

func verifyFault(err error) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &host):
		return ReasonWrongNames
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ReasonExpired
	}
	return ReasonUntrusted
}

// isTrusted reports whether the clients of every bundle accept the certificate.
func (s Standalone) isTrusted(certificate []byte, bundles [][]byte, now time.Time) bool {
	for _, bundle := range bundles {
		if _, err := s.verify(certificate, bundle, now); err != nil {
			return false
		}
	}
	return true
}

// verify checks the certificate as a client does that calls the server by each name. It
// returns when a chain of certificates is valid.
func (s Standalone) verify(certificate, authorities []byte, now time.Time) (*lifetime, error) {
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	o.Roots.AppendCertsFromPEM(authorities)
	all := parseBundle(certificate)
	if len(all) == 0 {
		return nil, errors.New("the certificate is unreadable")
	}
	for _, c := range all[1:] {
		o.Intermediates.AddCert(c)
	}
	var life *lifetime
	for _, o.DNSName = range s.Names {
		chains, err := all[0].Verify(o)
		if err != nil {
			return nil, err
		}
		life = longest(chains)
	}
	return life, nil
}

// longest returns the lifetime of the chain that is valid longest.
func longest(chains [][]*x509.Certificate) *lifetime {
	best := &lifetime{}
	for _, chain := range chains {
		l := lifetimeOf(chain[0])
		for _, c := range chain[1:] {
			if c.NotAfter.Before(l.end) {
				l.end = c.NotAfter
			}
		}
		if l.end.After(best.end) {
			best = l
		}
	}
	return best
}
