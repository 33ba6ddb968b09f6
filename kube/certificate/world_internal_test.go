package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/governor-dev/governor/kube/pki"
	"github.com/governor-dev/governor/lifecycle"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func after(years, days int) time.Time { return noon.AddDate(years, 0, days) }

// recipes are an authority and two members that call each other.
func recipes() map[string]lifecycle.Certificate {
	member := func(name string) lifecycle.Certificate {
		return lifecycle.Certificate{
			Authority: "ca", CommonName: name, DNSNames: []string{name + ".svc"}, IPAddresses: []string{"127.0.0.1"},
			Server: true, Client: true,
		}
	}
	return map[string]lifecycle.Certificate{"ca": {CommonName: "ring"}, "a": member("a"), "b": member("b")}
}

// world is what the Secrets hold.
type world map[string]map[string][]byte

func (w world) requests(all map[string]lifecycle.Certificate) []Request {
	var requests []Request
	for _, name := range slices.Sorted(maps.Keys(all)) {
		requests = append(requests, Request{Name: name, Certificate: all[name], Data: w[name]})
	}
	return requests
}

// turn plans and executes; it writes nothing.
func (w world) turn(t *testing.T, now time.Time) (Result, time.Time) {
	t.Helper()
	plan := Decide(w.requests(recipes()), now)
	made, err := plan.Execute(now)
	if err != nil {
		t.Fatal(err)
	}
	return made, plan.Due
}

// after is the world after all writes of one plan.
func (w world) after(t *testing.T, now time.Time) world {
	t.Helper()
	made, _ := w.turn(t, now)
	return made.Data
}

// with is the world with another value in one Secret; nil removes the key.
func (w world) with(secret, key string, value []byte) world {
	changed := maps.Clone(w)
	changed[secret] = maps.Clone(w[secret])
	changed[secret][key] = value
	if value == nil {
		delete(changed[secret], key)
	}
	return changed
}

func (w world) without(secret string) world {
	changed := maps.Clone(w)
	delete(changed, secret)
	return changed
}

func (w world) certificate(t *testing.T, secret string) *x509.Certificate {
	t.Helper()
	all := parseBundle(w[secret][lifecycle.KeyCertificate])
	if len(all) == 0 {
		t.Fatalf("%s has no certificate", secret)
	}
	return all[0]
}

// signed is the world with another certificate in the Secret. Its authority signed it from
// the edited template of the request.
func (w world) signed(t *testing.T, secret string, edit func(*x509.Certificate)) world {
	t.Helper()
	authority, err := pki.Parse(w["ca"][lifecycle.KeyCertificate], w["ca"][lifecycle.KeyPrivate])
	if err != nil {
		t.Fatal(err)
	}
	template := leafTemplate(recipes()[secret], leafLife, authority.Certificate.NotAfter, noon)
	edit(template)
	pair, err := pki.Issue(template, authority)
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.Key()
	if err != nil {
		t.Fatal(err)
	}
	return w.with(secret, lifecycle.KeyCertificate, pki.Encode(pair.Certificate)).with(secret, lifecycle.KeyPrivate, key)
}

// call lets one member call another with the data of their Secrets. It takes a real
// connection: in a pipe, members that refuse each other wait for each other.
func (w world) call(client, server string, now time.Time) error {
	serves, err := w.config(server, now)
	if err != nil {
		return err
	}
	calls, err := w.config(client, now)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	answered := make(chan error, 1)
	go func() {
		there, err := listener.Accept()
		if err == nil {
			err = tls.Server(there, serves).Handshake()
			_ = there.Close()
		}
		answered <- err
	}()
	calls.ServerName = server + ".svc"
	here, err := tls.Dial("tcp", listener.Addr().String(), calls)
	if err != nil {
		return err
	}
	return errors.Join(<-answered, here.Close())
}

func (w world) config(member string, now time.Time) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(w[member][lifecycle.KeyCertificate], w[member][lifecycle.KeyPrivate])
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w[member][lifecycle.KeyAuthorities])
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, MinVersion: tls.VersionTLS12,
		MaxVersion: tls.VersionTLS12, // in which a client learns at once that it was refused
		ClientAuth: tls.RequireAndVerifyClientCert, Time: func() time.Time { return now },
	}, err
}

// everyoneCalls fails the test if one member does not trust another.
func (w world) everyoneCalls(t *testing.T, now time.Time) {
	t.Helper()
	for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
		if err := w.call(pair[0], pair[1], now); err != nil {
			t.Fatalf("%v: %s calls %s: %v", now, pair[0], pair[1], err)
		}
	}
}
