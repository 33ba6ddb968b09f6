package consistencyclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// TLSConfig returns the TLS settings of a client that mounts the Secret with tls.crt, tls.key
// and ca.crt. The server name is name.
func TLSConfig(secret *corev1.Secret, name string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", secret.Name, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return nil, fmt.Errorf("the Secret %s has no authority in ca.crt", secret.Name)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: name}, nil
}
