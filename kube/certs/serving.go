package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
)

// Serving hands the present certificate to a TLS server. Its zero value has none
// yet and refuses every handshake, at once.
type Serving struct {
	current atomic.Pointer[tls.Certificate]
}

// Configure makes a TLS server use the certificate.
func (s *Serving) Configure(c *tls.Config) {
	c.MinVersion = tls.VersionTLS12
	c.GetCertificate = s.get
}

func (s *Serving) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c := s.current.Load()
	if c == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return c, nil
}

// Load serves what the Secret holds from the next handshake on. If that cannot be
// used, the former certificate stays.
func (s *Serving) Load(data Data) error {
	c, err := tls.X509KeyPair(data[certificateKey], data[privateKey])
	if err != nil {
		return fmt.Errorf("the certificate cannot be served: %w", err)
	}
	s.current.Store(&c)
	return nil
}

// Loaded reports whether there is a certificate to serve.
func (s *Serving) Loaded() bool { return s.current.Load() != nil }
