package webhookcert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/governor-dev/governor/kube/pki"
)

// Action is what is to be done about the certificate.
type Action string

const (
	// Keep means that nothing is to be done before Verdict.Next.
	Keep Action = "Keep"
	// Prepare means that the next certificate is made and its authority trusted.
	Prepare Action = "Prepare"
	// Promote means that the next certificate is served from now on.
	Promote Action = "Promote"
	// Replace means that the certificate is of no use and another is served at once.
	Replace Action = "Replace"
)

// Verdict is what is to be done and why.
type Verdict struct {
	Do     Action
	Reason string
	Next   time.Time // when to look again, of Keep
}

// Judge decides about the Secret's data, which is nil if there is no Secret. The
// bundles are what the callers trust at present, none if there are no callers. It
// is pure.
func Judge(data Data, names []string, bundles [][]byte, now time.Time) Verdict {
	if data == nil {
		return Verdict{Do: Replace, Reason: "Missing"}
	}
	serving, fault := inspect(data[certificateKey], data[privateKey], data[authoritiesKey], names, now)
	if fault != "" {
		return Verdict{Do: Replace, Reason: fault}
	}
	next, fault := inspect(data[nextCertificateKey], data[nextPrivateKey], data[authoritiesKey], names, now)
	switch {
	case fault == "" && now.Before(next.settled()):
		return Verdict{Do: Keep, Reason: "Settling", Next: earlier(next.settled(), serving.end)}
	case fault == "" && !trusted(data[nextCertificateKey], bundles, names, now):
		return Verdict{Do: Keep, Reason: "NotYetTrusted", Next: serving.end}
	case fault == "":
		return Verdict{Do: Promote, Reason: "Settled"}
	case !now.Before(serving.due()):
		return Verdict{Do: Prepare, Reason: "NearExpiry"}
	}
	return Verdict{Do: Keep, Reason: "Good", Next: serving.due()}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// span is when a certificate and its authority are both good.
type span struct{ begin, end time.Time }

// due is after two thirds, which leaves a month for whatever hinders a renewal.
func (s span) due() time.Time { return s.begin.Add(s.end.Sub(s.begin) * 2 / 3) }

// settled is when every caller has had the time to see the authority.
func (s span) settled() time.Time { return s.begin.Add(pki.Skew + settle) }

// inspect returns when the certificate is good, or its fault.
func inspect(certificate, key, authorities []byte, names []string, now time.Time) (span, string) {
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return span{}, "Unreadable"
	}
	var whole span
	for _, name := range names {
		s, err := verify(certificate, authorities, name, now)
		if err != nil {
			return span{}, faultOf(err)
		}
		whole = s
	}
	return whole, ""
}

func faultOf(err error) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &host):
		return "WrongNames"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "Expired"
	}
	return "Untrusted"
}

// verify does what a caller does.
func verify(certificate, authorities []byte, name string, now time.Time) (span, error) {
	leaves, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return span{}, err
	}
	roots, rest := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	for _, c := range leaves[1:] {
		rest.AddCert(c)
	}
	chains, err := leaves[0].Verify(x509.VerifyOptions{
		DNSName: name, Roots: roots, Intermediates: rest, CurrentTime: now,
	})
	if err != nil {
		return span{}, err
	}
	return longest(chains), nil
}

// longest returns the span of the chain that is good for longest.
func longest(chains [][]*x509.Certificate) span {
	var best span
	for _, chain := range chains {
		s := span{begin: chain[0].NotBefore, end: chain[0].NotAfter}
		for _, c := range chain[1:] {
			s.end = earlier(s.end, c.NotAfter)
		}
		if s.end.After(best.end) {
			best = s
		}
	}
	return best
}

// trusted reports whether every caller would accept the certificate.
func trusted(certificate []byte, bundles [][]byte, names []string, now time.Time) bool {
	for _, bundle := range bundles {
		for _, name := range names {
			if _, err := verify(certificate, bundle, name, now); err != nil {
				return false
			}
		}
	}
	return true
}

// Enact returns the data after the verdict.
func Enact(v Verdict, data Data, names []string, now time.Time) (Data, error) {
	if v.Do == Promote {
		return Data{
			certificateKey: data[nextCertificateKey], privateKey: data[nextPrivateKey],
			authoritiesKey: data[authoritiesKey],
		}, nil
	}
	fresh, err := mint(names, now)
	if err != nil {
		return nil, err
	}
	if v.Do == Replace {
		return Data{certificateKey: fresh.certificate, privateKey: fresh.key, authoritiesKey: fresh.authority}, nil
	}
	return Data{
		certificateKey: data[certificateKey], privateKey: data[privateKey],
		nextCertificateKey: fresh.certificate, nextPrivateKey: fresh.key,
		authoritiesKey: append(living(data[authoritiesKey], now), fresh.authority...),
	}, nil
}

// living drops the authorities that have expired.
func living(authorities []byte, now time.Time) []byte {
	all, err := cert.ParseCertsPEM(authorities)
	if err != nil {
		return nil
	}
	var kept bytes.Buffer
	for _, c := range all {
		if now.Before(c.NotAfter) {
			kept.Write(pki.Encode(c))
		}
	}
	return kept.Bytes()
}
