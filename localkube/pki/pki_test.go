package pki

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

func TestIssuedCertificateIsTrusted(t *testing.T) {
	dir := t.TempDir()
	ca, err := OpenAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := ca.Issue("server", Identity{User: "server", Groups: []string{"servers"}, Hosts: []string{"10.1.2.3", "server.example"}})
	if err != nil {
		t.Fatal(err)
	}
	certs, err := cert.CertsFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := cert.NewPool(ca.CertFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"10.1.2.3", "server.example"} {
		if _, err := certs[0].Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if certs[0].Subject.CommonName != "server" || certs[0].Subject.Organization[0] != "servers" {
		t.Errorf("subject is %s", certs[0].Subject)
	}
}

func TestNothingIsMadeTwice(t *testing.T) {
	dir := t.TempDir()
	read := func() string {
		ca, err := OpenAuthority(dir, "ca")
		if err != nil {
			t.Fatal(err)
		}
		_, key, err := ca.Issue("x", Identity{User: "x"})
		if err != nil {
			t.Fatal(err)
		}
		sa, _, err := ServiceAccountKey(dir)
		if err != nil {
			t.Fatal(err)
		}
		var all string
		for _, f := range []string{ca.CertFile(), key, sa} {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all += string(data)
		}
		return all
	}
	if first := read(); read() != first {
		t.Error("a second run made new keys: everything issued before would be worthless")
	}
}

func TestKubeconfigStandsAlone(t *testing.T) {
	dir := t.TempDir()
	ca, err := OpenAuthority(filepath.Join(dir, "pki"), "ca")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "admin.kubeconfig")
	if err := ca.Kubeconfig(file, "c", "https://10.0.0.1:6443", Identity{User: "admin"}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "pki")); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://10.0.0.1:6443" || len(config.CAData) == 0 || len(config.KeyData) == 0 {
		t.Errorf("kubeconfig lacks something: %s", config)
	}
}
