package webhookcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Serving hands the present certificate to TLS servers.
type Serving struct {
	current atomic.Pointer[tls.Certificate]
	loaded  chan struct{} // closed once there is a certificate
	once    sync.Once
}

// NewServing has no certificate yet and refuses every handshake, at once.
func NewServing() *Serving { return &Serving{loaded: make(chan struct{})} }

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
	s.once.Do(func() { close(s.loaded) })
	return nil
}

// Loaded reports whether there is a certificate to serve.
func (s *Serving) Loaded() bool { return s.current.Load() != nil }

// Server returns a webhook server that opens its port once there is a certificate,
// so that until then a caller is refused at once and not after a handshake.
func (s *Serving) Server(o webhook.Options) webhook.Server {
	o.TLSOpts = append(o.TLSOpts, s.Configure)
	return &server{Server: webhook.NewServer(o), serving: s}
}

type server struct {
	webhook.Server
	serving *Serving
}

// Start implements manager.Runnable. It never fails: the operator works without
// its webhook.
func (s *server) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.serving.loaded:
	}
	if err := s.Server.Start(ctx); err != nil {
		logf.FromContext(ctx).Error(err, noWebhook+". "+
			"Free the port or choose another with --webhook-port, and restart")
	}
	return nil
}
