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

// Issued is one certificate that was issued, or an authority that begins to sign.
type Issued struct {
	Secret string
	What   string // as it follows the name of the Secret
	Reason string
	Until  time.Time // when it expires
}

// String returns a sentence without its full stop.
func (i Issued) String() string {
	return fmt.Sprintf("%s %s until %s (%s)", i.Secret, i.What, i.Until.UTC().Format(time.RFC3339), i.Reason)
}

// Result is what the Secrets must hold.
type Result struct {
	Data   map[string]map[string][]byte // the owned keys, by Secret
	Phases map[string]lifecycle.RevocationPhase
	Issued []Issued
}

// The order of writes. An authority comes before its leaves, so that its key is not lost. A
// new leaf comes after all Secrets that must trust it.
const (
	rankFirst = iota
	rankOthers
	rankLast
	rankCount
)

func (m Result) rank(secret string, c lifecycle.Certificate) int {
	switch {
	case c.Authority == "":
		return rankFirst
	case slices.ContainsFunc(m.Issued, func(i Issued) bool { return i.Secret == secret }):
		return rankLast
	}
	return rankOthers
}

// Execute issues what the plan lacks. Each call makes new keys.
func (p Plan) Execute(now time.Time) (Result, error) {
	m := Result{Data: map[string]map[string][]byte{}, Phases: map[string]lifecycle.RevocationPhase{}}
	for _, a := range p.authorities {
		if err := m.addAuthority(a, now); err != nil {
			return Result{}, fmt.Errorf("cannot issue the authority %q: %w", a.request.Name, err)
		}
	}
	for _, l := range p.leaves {
		if err := m.addLeaf(l, now); err != nil {
			return Result{}, fmt.Errorf("cannot issue the certificate %q: %w", l.request.Name, err)
		}
	}
	return m, nil
}

// addAuthority completes the authority, so that it can sign leaves, and adds its Secret.
func (m *Result) addAuthority(a *authority, now time.Time) error {
	newest, err := a.complete(now)
	if err != nil {
		return err
	}
	if a.action != ActionKeep {
		m.Issued = append(m.Issued, Issued{a.request.Name, a.change(), a.reason, newest.Certificate.NotAfter})
	}
	m.Phases[a.request.Name] = a.phase(now)
	data := map[string][]byte{lifecycle.KeyAuthorities: pki.Encode(a.trusted...)}
	m.Data[a.request.Name] = data
	if a.next != nil {
		if err := store(data, keyNextCertificate, keyNextPrivate, a.next); err != nil {
			return err
		}
	}
	return store(data, lifecycle.KeyCertificate, lifecycle.KeyPrivate, a.signer)
}

// change describes the action as it follows the name of the Secret.
func (a *authority) change() string {
	switch a.action {
	case ActionPrepare:
		return "prepares its next authority, valid"
	case ActionPromote:
		return "begins to sign with its next authority, valid"
	}
	return "has a new authority, valid"
}

// complete issues the pair that the authority lacks. It returns the pair that the action
// is about.
func (a *authority) complete(now time.Time) (*pki.Pair, error) {
	if a.action != ActionReplace && a.action != ActionPrepare {
		return a.signer, nil
	}
	pair, err := pki.Issue(authorityTemplate(a.request.Certificate, authorityLife, now), nil)
	if err != nil {
		return nil, err
	}
	if a.action == ActionReplace {
		a.signer = pair
	} else {
		a.next = pair
	}
	a.trusted = sortUnique(append(a.trusted, pair.Certificate))
	return pair, nil
}

func (m *Result) addLeaf(l leaf, now time.Time) error {
	data := map[string][]byte{
		lifecycle.KeyCertificate: l.request.Data[lifecycle.KeyCertificate],
		lifecycle.KeyPrivate:     l.request.Data[lifecycle.KeyPrivate],
		lifecycle.KeyAuthorities: pki.Encode(l.authority.trusted...),
	}
	m.Data[l.request.Name] = data
	if l.reason == "" {
		return nil
	}
	signer := l.authority.signer
	pair, err := pki.Issue(leafTemplate(l.request.Certificate, leafLife, signer.Certificate.NotAfter, now), signer)
	if err != nil {
		return err
	}
	m.Issued = append(m.Issued, Issued{l.request.Name, "has a new certificate, valid", l.reason, pair.Certificate.NotAfter})
	return store(data, lifecycle.KeyCertificate, lifecycle.KeyPrivate, pair)
}

func store(data map[string][]byte, certificate, private string, pair *pki.Pair) error {
	key, err := pair.Key()
	data[certificate], data[private] = pki.Encode(pair.Certificate), key
	return err
}

func authorityTemplate(c lifecycle.Certificate, life time.Duration, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: c.CommonName},
		NotBefore: now.Add(-pki.Skew), NotAfter: now.Add(life),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
}

// leafTemplate ends with its authority at the latest: afterwards no user accepts the leaf.
func leafTemplate(c lifecycle.Certificate, life time.Duration, latest, now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: c.CommonName},
		NotBefore: now.Add(-pki.Skew), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages(c),
		BasicConstraintsValid: true,
		DNSNames:              c.DNSNames, IPAddresses: addresses(c),
	}
	if latest.Before(t.NotAfter) {
		t.NotAfter = latest
	}
	return t
}
