package webhookcert

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"
)

// handshake lets a caller that trusts the bundle call the server.
func handshake(serving *Serving, bundle []byte, now time.Time) error {
	config := &tls.Config{}
	serving.Configure(config)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	here, there := net.Pipe()
	defer func() { _, _ = here.Close(), there.Close() }()
	answered := make(chan error, 1)
	go func() { answered <- tls.Server(there, config).Handshake() }()
	caller := tls.Client(here, &tls.Config{
		RootCAs: roots, ServerName: names[0], Time: func() time.Time { return now },
	})
	if err := caller.Handshake(); err != nil {
		return err
	}
	return <-answered
}

// cluster is a leader's Secret and configuration, and those who learn of them late.
type cluster struct {
	t        *testing.T
	secret   Data
	bundle   []byte   // in the configuration
	seen     [][]byte // what each API server has seen of it
	replicas []*Serving
}

// tick is one look of the leader.
func (c *cluster) tick(now time.Time) Verdict {
	v := Judge(c.secret, names, [][]byte{c.bundle}, now)
	if v.Do != Keep {
		c.secret = enacted(c.t, v.Do, c.secret, now)
	}
	c.bundle = c.secret[authoritiesKey]
	return v
}

func (c *cluster) everyoneCalls(now time.Time) {
	c.t.Helper()
	for server, bundle := range c.seen {
		for i, replica := range c.replicas {
			if err := handshake(replica, bundle, now); err != nil {
				c.t.Fatalf("%v: API server %d calls replica %d: %v", now, server, i, err)
			}
		}
	}
}

// Over three years, with a replica and an API server that learn of everything at
// the last moment, every call succeeds.
func TestNoHandshakeFailsThroughRotations(t *testing.T) {
	c := &cluster{t: t, seen: make([][]byte, 2), replicas: []*Serving{NewServing(), NewServing()}}
	c.tick(noon)
	c.learn(0, 1)
	did := map[Action]int{}
	for now := noon; now.Before(noon.AddDate(3, 0, 0)); {
		v := c.tick(now)
		did[v.Do]++
		c.learn(0)
		c.everyoneCalls(now) // the second has not learnt yet
		if v.Do == Keep {
			now = v.Next.Add(-time.Second)
			c.learn(1)
			c.everyoneCalls(now)
			now = now.Add(time.Second)
		}
	}
	if did[Replace] != 0 || did[Prepare] < 17 || did[Promote] < did[Prepare]-1 {
		t.Errorf("the leader did %v", did)
	}
	t.Logf("%v", did)
}

// learn lets the replica and the API server of each number see what is.
func (c *cluster) learn(numbers ...int) {
	for _, n := range numbers {
		c.seen[n] = c.bundle
		if err := c.replicas[n].Load(c.secret); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestServing(t *testing.T) {
	s := NewServing()
	data := made(t, noon)
	if s.Loaded() || handshake(s, data[authoritiesKey], noon) == nil {
		t.Error("without a certificate a call fails, at once")
	}
	if err := s.Load(data); err != nil || !s.Loaded() {
		t.Fatal(err)
	}
	if err := s.Load(with(data, privateKey, nil)); err == nil {
		t.Error("garbage must be told")
	}
	if err := handshake(s, data[authoritiesKey], noon); err != nil {
		t.Errorf("garbage must not replace what works: %v", err)
	}
	if handshake(s, data[authoritiesKey], noon.AddDate(0, 0, 91)) == nil {
		t.Error("an expired certificate must be refused, or this test proves nothing")
	}
}
