package driver

import (
	"cmp"
	"crypto/x509"
	"net"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// peerNames are the two wildcards of which a user's own peer certificate needs both.
type peerNames struct {
	// called matches the host in the members' peer URLs.
	called string
	// caller matches the name that DNS has for a member's address. The member that is called looks it
	// up, and compares it with the certificate (checkCertSAN in etcd's client/pkg/transport). It is
	// empty if etcd compares no names of callers.
	caller string
	// service is the client Service: its names, in a certificate for all purposes, match no member.
	service string
}

// skipsNames is the variable with which etcd 3.5 compares no names of callers.
const skipsNames = "ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION"

// namesForPeers returns the wildcards; none are needed without other members.
func namesForPeers(want *etcdv1.EtcdCluster) peerNames {
	if want.Spec.Size < 2 {
		return peerNames{}
	}
	peer, err := url.Parse(etcd.PeerURL(want, want.Name))
	if err != nil {
		return peerNames{}
	}
	_, hosts, _ := strings.Cut(peer.Hostname(), ".")
	domain := "." + cmp.Or(want.Spec.ClusterDomain, "cluster.local")
	n := peerNames{called: "*." + hosts, service: etcd.ClientServiceName(want)}
	if !slices.ContainsFunc(want.Spec.Pod.Env, func(e corev1.EnvVar) bool { return e.Name == skipsNames }) {
		n.caller = "*." + strings.TrimSuffix(hosts, domain) + domain
	}
	return n
}

// missing returns the first wildcard that the certificate certainly lacks. Without any name, it is not judged:
// old releases of etcd accept a common name.
func (n peerNames) missing(leaf *x509.Certificate) string {
	if n.called == "" || leaf == nil || len(leaf.DNSNames) == 0 {
		return ""
	}
	called := func(name string) bool { return strings.HasSuffix(strings.ToLower(name), n.called[1:]) }
	looked := func(name string) bool { return strings.HasPrefix(name, "*.") && !strings.HasSuffix(name, ".svc") }
	switch {
	case !slices.ContainsFunc(leaf.DNSNames, called):
		return n.called
	case n.judges(leaf) && !slices.ContainsFunc(leaf.DNSNames, looked):
		return n.caller
	}
	return ""
}

// judges reports whether all names of the certificate are wildcards, or certainly no member's. DNS decides
// whether etcd accepts a caller with IP addresses or with other names.
func (n peerNames) judges(leaf *x509.Certificate) bool {
	member := func(name string) bool {
		return !strings.HasPrefix(name, "*.") && name != "localhost" && name != n.service && !strings.HasPrefix(name, n.service+".")
	}
	address := func(ip net.IP) bool { return !ip.IsLoopback() }
	return !slices.ContainsFunc(leaf.DNSNames, member) && !slices.ContainsFunc(leaf.IPAddresses, address)
}
