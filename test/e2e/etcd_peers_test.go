package e2e_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// TestEtcdPeersOfOtherReleases: the flag had another name before 3.6, and none before 3.5.
func TestEtcdPeersOfOtherReleases(t *testing.T) {
	for _, release := range []string{"3.5", "3.7"} {
		t.Run(release, func(t *testing.T) {
			c := formed(t, 2, version(release), func(spec *etcdv1.EtcdClusterSpec) { spec.TLS.Mode = etcdv1.TLSModeManaged })
			c.Apply(t, func(spec *etcdv1.EtcdClusterSpec) { spec.Size = 3 })
			c.settled(t)
			c.peers(t)
		})
	}
}

// peers checks that members trust certificates of their own authority only, and do not depend
// on names in DNS.
func (c *cluster) peers(t *testing.T) {
	t.Helper()
	for _, p := range c.pods(t) {
		address := net.JoinHostPort(p.Status.PodIP, "2380")
		if err := c.visit(t, address, p.Labels[etcd.LabelMember]+"-peer-tls"); err != nil {
			t.Errorf("a member is refused: %v", err)
		}
		if err := c.visit(t, address, c.key.Name+"-client-tls"); err == nil {
			t.Errorf("%s takes a client for a member", p.Name)
		}
		said := must(t, "-n", c.key.Namespace, "logs", p.Name)
		if contains(said, "does not match any of DNSNames") {
			t.Errorf("%s has looked for a name that is not known yet:\n%s", p.Name, said)
		}
		if contains(said, `"failed to resolve URL Host","url":"https://`+p.Name+`.`) {
			t.Errorf("%s does not know itself:\n%s", p.Name, said)
		}
	}
}

// visit calls the peer port with the certificates in the Secret.
func (c *cluster) visit(t *testing.T, address, secret string) error {
	t.Helper()
	var o consistencyclient.Options
	c.withKeys(t, secret)(&o)
	return calls(address, o.TLS.Certificates...)
}

// calls requests the version with the certificates.
func calls(address string, shown ...tls.Certificate) error {
	visitor := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{Certificates: shown, InsecureSkipVerify: true},
	}}
	answer, err := visitor.Get("https://" + address + "/version")
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
