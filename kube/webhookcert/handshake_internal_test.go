package webhookcert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/lifecycle"
)

var (
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	names = []string{"governor-webhook.governor-system.svc"}
	plan  = certificate.Standalone{CommonName: "ca", Names: names}
)

func issued(t *testing.T) map[string][]byte {
	t.Helper()
	data, err := plan.Issue(noon)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// handshake calls the server as a client that trusts the bundle. It takes a real connection:
// in a pipe, a client that refuses a certificate and its server wait for each other.
func handshake(serving *Serving, bundle []byte, now time.Time) error {
	config := &tls.Config{}
	serving.Configure(config)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	answered := make(chan error, 1)
	go func() {
		there, err := listener.Accept()
		if err == nil {
			err = errors.Join(there.(*tls.Conn).Handshake(), there.Close())
		}
		answered <- err
	}()
	here, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{
		RootCAs: roots, ServerName: names[0], Time: func() time.Time { return now },
	})
	if err != nil {
		return err
	}
	return errors.Join(<-answered, here.Close())
}

// cluster is a leader's Secret and configuration, and the servers that read them late.
type cluster struct {
	t        *testing.T
	secret   map[string][]byte
	bundle   []byte   // in the configuration
	seen     [][]byte // what each API server has seen of it
	replicas []*Serving
}

// reconcile is one reconcile of the leader.
func (c *cluster) reconcile(now time.Time) certificate.Decision {
	d := plan.Decide(c.secret, [][]byte{c.bundle}, now)
	data, err := plan.Execute(d, c.secret, now)
	if err != nil {
		c.t.Fatal(err)
	}
	c.secret, c.bundle = data, data[lifecycle.KeyAuthorities]
	return d
}

func (c *cluster) allCall(now time.Time) {
	c.t.Helper()
	for server, bundle := range c.seen {
		for i, replica := range c.replicas {
			if err := handshake(replica, bundle, now); err != nil {
				c.t.Fatalf("%v: API server %d calls replica %d: %v", now, server, i, err)
			}
		}
	}
}

// For three years one replica and one API server read every change at the last moment.
func TestNoHandshakeFailsThroughRotations(t *testing.T) {
	c := &cluster{t: t, seen: make([][]byte, 2), replicas: []*Serving{NewServing(), NewServing()}}
	c.reconcile(noon)
	c.read(0, 1)
	actions := map[certificate.Action]int{}
	for now := noon; now.Before(noon.AddDate(3, 0, 0)); {
		d := c.reconcile(now)
		actions[d.Action]++
		c.read(0)
		c.allCall(now) // the second has not read the change yet
		if d.Action == certificate.ActionKeep {
			now = d.Next.Add(-time.Second)
			c.read(1)
			c.allCall(now)
			now = now.Add(time.Second)
		}
	}
	replaced, prepared, promoted := actions[certificate.ActionReplace], actions[certificate.ActionPrepare], actions[certificate.ActionPromote]
	if replaced != 0 || prepared < 17 || promoted < prepared-1 {
		t.Errorf("the leader's actions are %v", actions)
	}
}

// read has the replica and the API server of each number read the current state.
func (c *cluster) read(numbers ...int) {
	for _, n := range numbers {
		c.seen[n] = c.bundle
		if err := c.replicas[n].Load(c.secret); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestServingKeepsTheFormerCertificate(t *testing.T) {
	s := NewServing()
	data := issued(t)
	if s.Loaded() || handshake(s, data[lifecycle.KeyAuthorities], noon) == nil {
		t.Error("a call succeeds without a certificate")
	}
	if err := s.Load(data); err != nil || !s.Loaded() {
		t.Fatal(err)
	}
	if err := s.Load(map[string][]byte{lifecycle.KeyCertificate: data[lifecycle.KeyCertificate]}); err == nil {
		t.Error("a damaged certificate causes no error")
	}
	if err := handshake(s, data[lifecycle.KeyAuthorities], noon); err != nil {
		t.Errorf("a damaged certificate replaces a good one: %v", err)
	}
	if handshake(s, data[lifecycle.KeyAuthorities], noon.AddDate(0, 0, 91)) == nil {
		t.Error("the client accepts an expired certificate")
	}
}
