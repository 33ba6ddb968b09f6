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

	"github.com/governor-dev/governor/lifecycle"
)

// Serving provides the current certificate to TLS servers.
type Serving struct {
	current atomic.Pointer[tls.Certificate]
	loaded  chan struct{} // closed once there is a certificate
	once    sync.Once
}

// NewServing returns a Serving without a certificate, which refuses every handshake at once.
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

// Load serves the certificate of a Secret from the next handshake on. If the data is
// unusable, the former certificate stays.
func (s *Serving) Load(data map[string][]byte) error {
	c, err := tls.X509KeyPair(data[lifecycle.KeyCertificate], data[lifecycle.KeyPrivate])
	if err != nil {
		return fmt.Errorf("cannot serve the certificate: %w", err)
	}
	s.current.Store(&c)
	s.once.Do(func() { close(s.loaded) })
	return nil
}

// Loaded reports whether there is a certificate to serve.
func (s *Serving) Loaded() bool { return s.current.Load() != nil }

// Server returns a webhook server that opens its port once there is a certificate,
// so that until then a client is refused at once and not after a handshake.
func (s *Serving) Server(o webhook.Options) webhook.Server {
	o.TLSOpts = append(o.TLSOpts, s.Configure)
	return &server{Server: webhook.NewServer(o), serving: s}
}

type server struct {
	webhook.Server
	serving *Serving
}

// Start implements manager.Runnable. It never fails: the operator works without
// its webhooks.
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
