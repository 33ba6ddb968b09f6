package certificate

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"net"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/governor-dev/governor/kube/pki"
	"github.com/governor-dev/governor/lifecycle"
)

// readAuthority returns the pair, or its fault.
func readAuthority(data map[string][]byte, certificate, key string, now time.Time) (*pki.Pair, string) {
	if len(data[certificate]) == 0 && len(data[key]) == 0 {
		return nil, Missing
	}
	pair, err := pki.Parse(data[certificate], data[key])
	switch {
	case err != nil:
		return nil, Unreadable
	case !signs(pair.Certificate):
		return nil, NotAnAuthority
	case now.After(pair.Certificate.NotAfter):
		return nil, Expired
	}
	return pair, ""
}

func signs(c *x509.Certificate) bool {
	return c.BasicConstraintsValid && c.IsCA && c.KeyUsage&x509.KeyUsageCertSign != 0
}

// readLeaf returns the certificate, or its fault. A certificate that is not yet
// valid is none: it would be replaced because a clock went wrong, by one that nobody
// accepts once the clock is right.
func readLeaf(o Order, trusted []*x509.Certificate, now time.Time) (*x509.Certificate, string) {
	if len(o.Data[lifecycle.KeyCertificate]) == 0 && len(o.Data[lifecycle.KeyPrivate]) == 0 {
		return nil, Missing
	}
	pair, err := pki.Parse(o.Data[lifecycle.KeyCertificate], o.Data[lifecycle.KeyPrivate])
	if err != nil {
		return nil, Unreadable
	}
	c := pair.Certificate
	switch {
	case !sameNames(c, o.Recipe):
		return nil, WrongNames
	case c.IsCA || !sameSet(c.ExtKeyUsage, usages(o.Recipe)):
		return nil, WrongUsages
	case now.After(c.NotAfter):
		return nil, Expired
	case !verifies(c, trusted, now):
		return nil, Untrusted
	}
	return c, ""
}

func verifies(c *x509.Certificate, trusted []*x509.Certificate, now time.Time) bool {
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

func sameNames(c *x509.Certificate, r lifecycle.Certificate) bool {
	return c.Subject.CommonName == r.CommonName && sameSet(c.DNSNames, r.DNSNames) &&
		sameSet(written(c.IPAddresses), written(addresses(r))) && len(c.URIs)+len(c.EmailAddresses) == 0
}

func addresses(r lifecycle.Certificate) []net.IP {
	all := make([]net.IP, 0, len(r.IPAddresses))
	for _, a := range r.IPAddresses {
		all = append(all, net.ParseIP(a))
	}
	return all
}

func written(all []net.IP) []string {
	text := make([]string, 0, len(all))
	for _, ip := range all {
		text = append(text, ip.String())
	}
	return text
}

func usages(r lifecycle.Certificate) []x509.ExtKeyUsage {
	var all []x509.ExtKeyUsage
	if r.Server {
		all = append(all, x509.ExtKeyUsageServerAuth)
	}
	if r.Client {
		all = append(all, x509.ExtKeyUsageClientAuth)
	}
	return all
}

func sameSet[E cmp.Ordered](a, b []E) bool { return slices.Equal(set(a), set(b)) }

func set[E cmp.Ordered](all []E) []E {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// trustedBy collects the authorities to trust. The authority's own Secret knows them;
// if it is damaged or gone, the leaves do. So they do while one is revoked: the Secret may
// be an older one that somebody has restored. A leaf that its own ca.crt does not explain
// was meddled with, and nobody shall trust what it brings.
func trustedBy(a *authority, now time.Time) []*x509.Certificate {
	all := parse(a.order.Data[lifecycle.KeyAuthorities])
	if a.signs == nil || !contains(all, a.signs.Certificate) || slices.ContainsFunc(all, a.revoked.covers) {
		for _, l := range a.leaves {
			all = append(all, vouched(l, now)...)
		}
	}
	for _, pair := range []*pki.Pair{a.signs, a.next} {
		if pair != nil {
			all = append(all, pair.Certificate)
		}
	}
	return ordered(slices.DeleteFunc(all, func(c *x509.Certificate) bool {
		return !signs(c) || now.After(c.NotAfter) || a.revoked.refuses(c)
	}))
}

// vouched returns what the leaf trusts, if that has signed the leaf itself.
func vouched(o Order, now time.Time) []*x509.Certificate {
	all := parse(o.Data[lifecycle.KeyAuthorities])
	if _, fault := readLeaf(o, all, now); fault != "" {
		return nil
	}
	return all
}

// parse returns the certificates of a bundle, none if it cannot be read.
func parse(bundle []byte) []*x509.Certificate {
	all, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	return all
}

// ordered brings the same certificates into the same order.
func ordered(all []*x509.Certificate) []*x509.Certificate {
	slices.SortFunc(all, func(a, b *x509.Certificate) int { return bytes.Compare(a.Raw, b.Raw) })
	return slices.CompactFunc(all, (*x509.Certificate).Equal)
}
