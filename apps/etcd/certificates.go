package etcd

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// AnnotationCertificate on a Secret of Resources asks for a certificate: its value
// is a [Certificate]. Whoever applies the Secret fills in tls.crt, tls.key and
// ca.crt where they are missing, do not match the recipe, or are near their end.
const AnnotationCertificate = "governor.dev/certificate"

// Certificate is the recipe of a certificate; it has no secret in it.
type Certificate struct {
	// Authority is the Secret that signs; empty for an authority itself.
	Authority string `json:"authority,omitempty"`
	// CommonName of the subject.
	CommonName string `json:"commonName"`
	// DNSNames and IPAddresses that it is valid for.
	DNSNames    []string `json:"dnsNames,omitempty"`
	IPAddresses []string `json:"ipAddresses,omitempty"`
	// Server and Client are what it may be used for.
	Server bool `json:"server,omitempty"`
	Client bool `json:"client,omitempty"`
}

func peerScheme(want *etcdv1.EtcdCluster) string   { return scheme(peersEncrypt(want)) }
func clientScheme(want *etcdv1.EtcdCluster) string { return scheme(ClientsEncrypt(want)) }

func scheme(encrypts bool) string {
	if encrypts {
		return "https"
	}
	return "http"
}

// managed is the default, also of objects that no API server has defaulted.
func managed(want *etcdv1.EtcdCluster) bool {
	return want.Spec.TLS.Mode == etcdv1.Managed || want.Spec.TLS.Mode == ""
}

func own(want *etcdv1.EtcdCluster) etcdv1.TLSSecrets {
	if want.Spec.TLS.Mode != etcdv1.Secrets || want.Spec.TLS.Secrets == nil {
		return etcdv1.TLSSecrets{}
	}
	return *want.Spec.TLS.Secrets
}

func peersEncrypt(want *etcdv1.EtcdCluster) bool { return managed(want) || own(want).Peer != "" }

// ClientsEncrypt says that members ask clients for a certificate.
func ClientsEncrypt(want *etcdv1.EtcdCluster) bool { return managed(want) || own(want).Server != "" }

// Two authorities: a client of the database must not be able to pose as a member.
func clientAuthority(want *etcdv1.EtcdCluster) string { return want.Name + "-ca" }
func peerAuthority(want *etcdv1.EtcdCluster) string   { return want.Name + "-peer-ca" }

// ClientSecret is the Secret with the certificate that clients show members; empty
// if they show none.
func ClientSecret(want *etcdv1.EtcdCluster) string {
	if managed(want) {
		return want.Name + "-client-tls"
	}
	return own(want).Client
}

// Authorities are the Secrets of those whom members must trust.
func Authorities(want *etcdv1.EtcdCluster) []string {
	if managed(want) {
		return []string{clientAuthority(want), peerAuthority(want)}
	}
	return nil
}

func peerSecret(want *etcdv1.EtcdCluster, member string) string {
	if managed(want) {
		return member + "-peer-tls"
	}
	return own(want).Peer
}

func serverSecret(want *etcdv1.EtcdCluster, member string) string {
	if managed(want) {
		return member + "-server-tls"
	}
	return own(want).Server
}

// certificateSecrets are the recipes of a managed cluster: two authorities that are
// this cluster's alone, one certificate for clients, and two for each member.
func certificateSecrets(want *etcdv1.EtcdCluster, seen World) ([]lifecycle.Object, error) {
	if !managed(want) {
		return nil, nil
	}
	var all []lifecycle.Object
	var failed error
	add := func(name string, c Certificate) {
		s, err := certificate(want, name, c)
		if err != nil {
			failed = err
		}
		all = append(all, s)
	}
	add(clientAuthority(want), Certificate{CommonName: want.Name})
	add(peerAuthority(want), Certificate{CommonName: want.Name + " peers"})
	add(ClientSecret(want), Certificate{Authority: clientAuthority(want), CommonName: "client", Client: true})
	for _, m := range residents(want, seen) {
		add(peerSecret(want, m.Name), peerCertificate(want, m.Name))
		add(serverSecret(want, m.Name), serverCertificate(want, m.Name))
	}
	return all, failed
}

func certificate(want *etcdv1.EtcdCluster, name string, c Certificate) (*corev1.Secret, error) {
	recipe, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: selector(want), Annotations: map[string]string{AnnotationCertificate: string(recipe)},
	}}
	s.Type = corev1.SecretTypeOpaque
	return s, nil
}

// peerCertificate is good for both ends, as members call each other. It names one
// pod only: etcd checks that the name resolves to the caller's address.
func peerCertificate(want *etcdv1.EtcdCluster, member string) Certificate {
	return Certificate{
		Authority: peerAuthority(want), CommonName: member, Server: true, Client: true,
		DNSNames: []string{podHost(want, member)},
	}
}

// serverCertificate is also good for clients: etcd's own gateway calls the member
// with it.
func serverCertificate(want *etcdv1.EtcdCluster, member string) Certificate {
	service := clientService(want)
	return Certificate{
		Authority: clientAuthority(want), CommonName: member, Server: true, Client: true,
		DNSNames: slices.Compact([]string{
			podHost(want, member), host(want, service), service + "." + want.Namespace + ".svc",
			service + "." + want.Namespace, service, "localhost",
		}),
		IPAddresses: []string{"127.0.0.1", "::1"},
	}
}
