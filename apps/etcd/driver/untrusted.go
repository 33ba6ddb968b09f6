package driver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// untrusted describes which side would refuse the other's certificate, because none of its authorities has
// signed it: members and the operator verify each other, and members with peers verify themselves. All
// Secrets are valid.
func untrusted(all []userSecret, peers bool) string {
	verifies := map[string]string{"client": "server", "server": "client"}
	if peers {
		verifies["peer"] = "peer"
	}
	for _, h := range all {
		at := slices.IndexFunc(all, func(o userSecret) bool { return o.field == verifies[h.field] })
		if at < 0 {
			continue
		}
		by := all[at]
		if authorities := bundleOf(by.secret, by.keyNames()).authorities; !signedBy(bundleOf(h.secret, h.keyNames()), authorities) {
			return h.problemf("has a certificate that no authority in %q of the Secret %q has signed: renew one of them.", by.keyNames().authorities, by.name)
		}
	}
	return ""
}

// signedBy verifies the chain, and neither its dates nor its purpose. An authority that was renewed with its key may
// be younger than what it signed, so that each beginning of a certificate is tried.
func signedBy(b bundle, authorities []byte) bool {
	pair, err := tls.X509KeyPair(b.certificate, b.key)
	if err != nil || pair.Leaf == nil {
		return true // another check reports it
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	options.Roots.AppendCertsFromPEM(authorities)
	options.Intermediates.AppendCertsFromPEM(b.certificate)
	for _, begins := range beginnings(authorities, b.certificate) {
		options.CurrentTime = begins
		if _, err := pair.Leaf.Verify(options); err == nil {
			return true
		}
	}
	return false
}

// beginnings are the times from which the certificates are valid.
func beginnings(all ...[]byte) []time.Time {
	var times []time.Time
	for _, rest := range all {
		for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
			if c, err := x509.ParseCertificate(block.Bytes); err == nil {
				times = append(times, c.NotBefore)
			}
		}
	}
	return times
}
