package certificate

import (
	"bytes"
	"crypto/x509"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

// parseBundle returns the certificates of a bundle, or none if the bundle is unreadable.
func parseBundle(bundle []byte) []*x509.Certificate {
	all, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	return all
}

func contains(all []*x509.Certificate, c *x509.Certificate) bool {
	return slices.ContainsFunc(all, c.Equal)
}

// unexpired removes expired certificates from the slice.
func unexpired(all []*x509.Certificate, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(all, func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
}

// sortUnique sorts the slice, so that the same certificates make the same bundle.
func sortUnique(all []*x509.Certificate) []*x509.Certificate {
	slices.SortFunc(all, func(a, b *x509.Certificate) int { return bytes.Compare(a.Raw, b.Raw) })
	return slices.CompactFunc(all, (*x509.Certificate).Equal)
}

// canSign reports whether the certificate is that of an authority.
func canSign(c *x509.Certificate) bool {
	return c.BasicConstraintsValid && c.IsCA && c.KeyUsage&x509.KeyUsageCertSign != 0
}
