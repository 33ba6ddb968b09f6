// Package pki makes the certificates and kubeconfigs of a cluster. Every component has a name of its own, so that the
// stock RBAC and the Node authorizer decide what each may do.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is long because localkube does not renew the certificates of a short-lived cluster.
const validity = 10 * 365 * 24 * time.Hour

// Authority signs certificates. Its files are DIR/NAME.crt and DIR/NAME.key.
type Authority struct {
	dir, name string
	cert      *x509.Certificate
	key       crypto.Signer
}

// OpenAuthority reads the authority called name in dir, or makes it when it is not there yet.
func OpenAuthority(dir, name string) (*Authority, error) {
	a := &Authority{dir: dir, name: name}
	err := a.read()
	if !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a.key = key
	a.cert, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "localkube-" + name, NotBefore: time.Now()}, key)
	if err != nil {
		return nil, err
	}
	return a, writePair(dir, name, a.cert.Raw, key)
}

// For is the same authority with its certificate, but not its key, copied to another folder, where what it issues will lie.
func (a *Authority) For(dir string) (*Authority, error) {
	other := &Authority{dir: dir, name: a.name, cert: a.cert, key: a.key}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: a.cert.Raw})
	return other, os.WriteFile(other.CertFile(), block, 0o644)
}

// CertFile is the path of the authority's own certificate.
func (a *Authority) CertFile() string { return filepath.Join(a.dir, a.name+".crt") }

func (a *Authority) keyFile() string { return filepath.Join(a.dir, a.name+".key") }

func (a *Authority) read() error {
	certs, err := cert.CertsFromFile(a.CertFile())
	if err != nil {
		return err
	}
	key, err := keyutil.PrivateKeyFromFile(a.keyFile())
	if err != nil {
		return err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return fmt.Errorf("%s: %T cannot sign", a.keyFile(), key)
	}
	a.cert, a.key = certs[0], signer
	return nil
}

// Identity is the subject of a certificate.
type Identity struct {
	// User is the common name: the user that the API server sees.
	User string
	// Groups are the organizations: the groups that the API server sees.
	Groups []string
	// Hosts are the DNS names and IP addresses that a server answers to.
	Hosts []string
}

// Issue writes DIR/NAME.crt and DIR/NAME.key for the identity, unless they are there already.
func (a *Authority) Issue(name string, id Identity) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	if _, err := os.Stat(keyFile); err == nil {
		return certFile, keyFile, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template, err := id.template()
	if err != nil {
		return "", "", err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return "", "", err
	}
	return certFile, keyFile, writePair(a.dir, name, der, key)
}

func (id Identity) template() (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.User, Organization: id.Groups},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, h := range id.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return t, nil
}

// ServiceAccountKey writes the key pair that signs service account tokens to DIR/sa.key and DIR/sa.pub, unless it is there.
func ServiceAccountKey(dir string) (keyFile, publicFile string, err error) {
	keyFile, publicFile = filepath.Join(dir, "sa.key"), filepath.Join(dir, "sa.pub")
	if _, err := os.Stat(keyFile); err == nil {
		return keyFile, publicFile, nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", "", err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", "", err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return keyFile, publicFile, errors.Join(os.WriteFile(publicFile, block, 0o644), writeKey(keyFile, key))
}

// writePair writes the certificate first: a key on disk means that its certificate is there too.
func writePair(dir, name string, der []byte, key crypto.Signer) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), block, 0o644); err != nil {
		return err
	}
	return writeKey(filepath.Join(dir, name+".key"), key)
}

func writeKey(file string, key crypto.Signer) error {
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return keyutil.WriteKey(file, data)
}

// Kubeconfig writes a kubeconfig for the identity to file, with everything inside it, so that it can be copied anywhere.
func (a *Authority) Kubeconfig(file, cluster, server string, id Identity) error {
	certFile, keyFile, err := a.Issue("kubeconfig-"+filepath.Base(file), id)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: a.CertFile()}
	config.AuthInfos[id.User] = &clientcmdapi.AuthInfo{ClientCertificate: certFile, ClientKey: keyFile}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: id.User}
	config.CurrentContext = cluster
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, file)
}
