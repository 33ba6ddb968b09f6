package etcd

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

func peerScheme(want *etcdv1.EtcdCluster) string   { return scheme(peersEncrypt(want)) }
func clientScheme(want *etcdv1.EtcdCluster) string { return scheme(ClientsEncrypt(want)) }

func scheme(encrypts bool) string {
	if encrypts {
		return "https"
	}
	return "http"
}

// managed reports whether Governor issues the certificates. That is the default, also for
// objects that no API server has defaulted.
func managed(want *etcdv1.EtcdCluster) bool {
	return want.Spec.TLS.Mode == etcdv1.TLSModeManaged || want.Spec.TLS.Mode == ""
}

func own(want *etcdv1.EtcdCluster) etcdv1.TLSSecrets {
	if want.Spec.TLS.Mode != etcdv1.TLSModeSecrets || want.Spec.TLS.Secrets == nil {
		return etcdv1.TLSSecrets{}
	}
	return *want.Spec.TLS.Secrets
}

func peersEncrypt(want *etcdv1.EtcdCluster) bool { return managed(want) || own(want).Peer != "" }

// ClientsEncrypt reports whether members require client certificates.
func ClientsEncrypt(want *etcdv1.EtcdCluster) bool { return managed(want) || own(want).Server != "" }

// clientAuthority and peerAuthority differ because a database client must not be able to join as
// a member.
func clientAuthority(want *etcdv1.EtcdCluster) string { return want.Name + "-ca" }
func peerAuthority(want *etcdv1.EtcdCluster) string   { return want.Name + "-peer-ca" }

// ClientSecret returns the name of the Secret with the certificate that clients present to
// members. It is empty if they present none.
func ClientSecret(want *etcdv1.EtcdCluster) string {
	if managed(want) {
		return want.Name + "-client-tls"
	}
	return own(want).Client
}

// Authorities returns the names of the Secrets with the authorities that members must trust.
func Authorities(want *etcdv1.EtcdCluster) []string {
	if managed(want) {
		return []string{clientAuthority(want), peerAuthority(want)}
	}
	return nil
}

// PeerSecret returns the name of the Secret with the certificate that the member presents to
// other members. It is empty if the member presents none.
func PeerSecret(want *etcdv1.EtcdCluster, member string) string {
	if managed(want) {
		return member + "-peer-tls"
	}
	return own(want).Peer
}

// ServerSecret returns the name of the Secret with the certificate that the member presents to
// clients. It is empty if the member presents none.
func ServerSecret(want *etcdv1.EtcdCluster, member string) string {
	if managed(want) {
		return member + "-server-tls"
	}
	return own(want).Server
}

// certificateSecrets returns the certificate requests of a managed cluster: two authorities used
// by this cluster only, one client certificate, and two certificates for each member.
func certificateSecrets(want *etcdv1.EtcdCluster, seen World) []lifecycle.Object {
	if !managed(want) {
		return nil
	}
	var all []lifecycle.Object
	add := func(name string, c lifecycle.Certificate) { all = append(all, c.Secret(name, selector(want))) }
	authority := func(name, subject string) {
		add(name, lifecycle.Certificate{CommonName: subject, Revocation: revocation(want, seen, name)})
	}
	authority(clientAuthority(want), want.Name)
	authority(peerAuthority(want), want.Name+" peers")
	add(ClientSecret(want), lifecycle.Certificate{Authority: clientAuthority(want), CommonName: "client", Client: true})
	for _, m := range currentMembers(want, seen) {
		add(PeerSecret(want, m.Name), peerCertificate(want, m.Name))
		add(ServerSecret(want, m.Name), serverCertificate(want, m.Name))
	}
	return all
}

// peerCertificate is valid for both ends of a connection, because members call each other. It
// names one pod only: etcd checks that the name resolves to the caller's address.
func peerCertificate(want *etcdv1.EtcdCluster, member string) lifecycle.Certificate {
	return lifecycle.Certificate{
		Authority: peerAuthority(want), CommonName: member, Server: true, Client: true,
		DNSNames: []string{podHost(want, member)},
	}
}

// serverCertificate is also valid for clients: etcd's own gateway calls the member with it.
func serverCertificate(want *etcdv1.EtcdCluster, member string) lifecycle.Certificate {
	service := ClientServiceName(want)
	return lifecycle.Certificate{
		Authority: clientAuthority(want), CommonName: member, Server: true, Client: true,
		DNSNames: slices.Compact([]string{
			podHost(want, member), host(want, service), service + "." + want.Namespace + ".svc",
			service + "." + want.Namespace, service, "localhost",
		}),
		IPAddresses: []string{"127.0.0.1", "::1"},
	}
}

// Trust returns a digest of authorities, each in PEM.
func Trust(authorities [][]byte) string {
	sum := sha256.Sum256(bytes.Join(authorities, []byte{0}))
	return fmt.Sprintf("%x", sum[:6])
}

// WithResources is one of the [Abilities]: members must trust a newly created authority.
func (Planner) WithResources(want *etcdv1.EtcdCluster, seen World, objects []lifecycle.Object) World {
	var secrets []*corev1.Secret
	for _, name := range Authorities(want) {
		for _, obj := range objects {
			if s, ok := obj.(*corev1.Secret); ok && s.Name == name && len(s.Data[lifecycle.KeyAuthorities]) > 0 {
				secrets = append(secrets, s)
			}
		}
	}
	if len(secrets) > 0 && len(secrets) == len(Authorities(want)) {
		seen = Trusting(want, seen, secrets)
	}
	return seen
}

// Trusting returns the world with the facts from the Secrets of all its authorities.
func Trusting(want *etcdv1.EtcdCluster, seen World, authorities []*corev1.Secret) World {
	var all [][]byte
	for _, s := range authorities {
		all = append(all, s.Data[lifecycle.KeyAuthorities])
	}
	seen.Trust = Trust(all)
	seen.Revocation, seen.Bundles = revocationSeen(want, authorities)
	return seen
}
