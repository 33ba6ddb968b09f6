package certificate

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"time"

	"github.com/governor-dev/governor/kube/pki"
	"github.com/governor-dev/governor/lifecycle"
)

// Issued is one certificate that was made, or begins to sign.
type Issued struct {
	Secret string
	What   string // as it follows the name of the Secret
	Reason string
	Until  time.Time // when it expires
}

// String is a sentence without its full stop.
func (i Issued) String() string {
	return fmt.Sprintf("%s %s until %s (%s)", i.Secret, i.What, i.Until.UTC().Format(time.RFC3339), i.Reason)
}

// Made is what the Secrets are to hold.
type Made struct {
	Data   map[string]map[string][]byte // of the issuer's keys, by Secret
	Phases map[string]lifecycle.RevocationPhase
	Issued []Issued
}

// The order of writing. An authority comes before what it has signed, lest its key be
// lost; and what it has signed comes after all who have to trust it.
const (
	first = iota
	others
	last
	ranks
)

func (m Made) rank(secret string, r lifecycle.Certificate) int {
	switch {
	case r.Authority == "":
		return first
	case slices.ContainsFunc(m.Issued, func(i Issued) bool { return i.Secret == secret }):
		return last
	}
	return others
}

// Make makes what the plan lacks. The keys are new each time.
func (p Plan) Make(now time.Time) (Made, error) {
	m := Made{Data: map[string]map[string][]byte{}, Phases: map[string]lifecycle.RevocationPhase{}}
	for _, a := range p.authorities {
		if err := m.authority(a, now); err != nil {
			return Made{}, fmt.Errorf("cannot make the authority %q: %w", a.order.Name, err)
		}
	}
	for _, l := range p.leaves {
		if err := m.leaf(l, now); err != nil {
			return Made{}, fmt.Errorf("cannot make the certificate %q: %w", l.order.Name, err)
		}
	}
	return m, nil
}

// authority completes a, so that leaves can be signed, and writes its Secret.
func (m *Made) authority(a *authority, now time.Time) error {
	newest, err := a.complete(now)
	if err != nil {
		return err
	}
	if a.change != "" {
		m.Issued = append(m.Issued, Issued{a.order.Name, string(a.change), a.reason, newest.Certificate.NotAfter})
	}
	m.Phases[a.order.Name] = a.phase(now)
	data := map[string][]byte{lifecycle.KeyAuthorities: pki.Encode(a.trusted...)}
	m.Data[a.order.Name] = data
	if a.next != nil {
		if err := store(data, keyNextCertificate, keyNextPrivate, a.next); err != nil {
			return err
		}
	}
	return store(data, lifecycle.KeyCertificate, lifecycle.KeyPrivate, a.signs)
}

// complete makes the pair that a lacks, and returns the one that the change is about.
func (a *authority) complete(now time.Time) (*pki.Pair, error) {
	if a.change != founded && a.change != prepared {
		return a.signs, nil
	}
	pair, err := pki.Issue(authorityTemplate(a.order.Recipe, now), nil)
	if err != nil {
		return nil, err
	}
	if a.change == founded {
		a.signs = pair
	} else {
		a.next = pair
	}
	a.trusted = ordered(append(a.trusted, pair.Certificate))
	return pair, nil
}

func (m *Made) leaf(l leaf, now time.Time) error {
	data := map[string][]byte{
		lifecycle.KeyCertificate: l.order.Data[lifecycle.KeyCertificate],
		lifecycle.KeyPrivate:     l.order.Data[lifecycle.KeyPrivate],
		lifecycle.KeyAuthorities: pki.Encode(l.by.trusted...),
	}
	m.Data[l.order.Name] = data
	if l.reason == "" {
		return nil
	}
	signer := l.by.signs
	pair, err := pki.Issue(leafTemplate(l.order.Recipe, signer.Certificate.NotAfter, now), signer)
	if err != nil {
		return err
	}
	m.Issued = append(m.Issued, Issued{l.order.Name, "has a new certificate, good", l.reason, pair.Certificate.NotAfter})
	return store(data, lifecycle.KeyCertificate, lifecycle.KeyPrivate, pair)
}

func store(data map[string][]byte, certificate, private string, pair *pki.Pair) error {
	key, err := pair.Key()
	data[certificate], data[private] = pki.Encode(pair.Certificate), key
	return err
}

func authorityTemplate(r lifecycle.Certificate, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: r.CommonName},
		NotBefore: now.Add(-pki.Skew), NotAfter: now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
}

// leafTemplate ends with its authority at the latest: nobody would accept it longer.
func leafTemplate(r lifecycle.Certificate, latest, now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: r.CommonName},
		NotBefore: now.Add(-pki.Skew), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages(r),
		BasicConstraintsValid: true,
		DNSNames:              r.DNSNames, IPAddresses: addresses(r),
	}
	if latest.Before(t.NotAfter) {
		t.NotAfter = latest
	}
	return t
}
