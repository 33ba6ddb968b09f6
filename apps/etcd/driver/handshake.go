package driver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

const peerPort = "2380"

// refused says that a handshake fails because one side does not know the authority of
// the other's certificate. The operator shows its own only to a member whose certificate
// it believes, and sends nothing but a question for the version.
func refused(ctx context.Context, address, name string, config *tls.Config, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	config = config.Clone()
	config.ServerName = name
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return unknownAuthority(err)
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	// With TLS 1.3 the member judges our certificate after our side of the handshake.
	if _, err := fmt.Fprintf(conn, "GET /version HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name); err != nil {
		return unknownAuthority(err)
	}
	_, err = conn.Read(make([]byte, 1))
	return err != nil && unknownAuthority(err)
}

// unknownAuthority reads the verdict of either side. The alerts of crypto/tls have no
// exported type.
func unknownAuthority(err error) bool {
	var ours x509.UnknownAuthorityError
	var theirs *net.OpError
	if errors.As(err, &ours) {
		return true
	}
	return errors.As(err, &theirs) && theirs.Op == "remote error" &&
		(strings.Contains(theirs.Err.Error(), "unknown certificate authority") || strings.Contains(theirs.Err.Error(), "bad certificate"))
}

// askPeerPorts finds out which members refuse the present certificates of their peers.
// Only members that run with other authorities can, so at rest no member is asked.
func (d *Driver) askPeerPorts(ctx context.Context, want *etcdv1.EtcdCluster, p parts, k keys, members []etcd.Member) {
	var group sync.WaitGroup
	for i := range members {
		m := &members[i]
		running := p.pods[m.Name]
		if running == nil || running.Status.PodIP == "" || !etcd.OtherAuthorities(*m, k.trust) {
			continue
		}
		group.Go(func() { m.PeersRefused = d.peersRefused(ctx, want, running, m.Name, k) })
	}
	group.Wait()
}

func (d *Driver) peersRefused(ctx context.Context, want *etcdv1.EtcdCluster, running *corev1.Pod, member string, k keys) bool {
	config := k.peers
	if config == nil {
		s, err := d.minted(ctx, want, etcd.PeerSecret(want, member))
		if err != nil || s == nil {
			return false
		}
		if config, err = configure(bundleOf(s, modern)); err != nil {
			return false
		}
	}
	u, err := url.Parse(etcd.PeerURL(want, member))
	if err != nil {
		return false
	}
	return refused(ctx, net.JoinHostPort(running.Status.PodIP, peerPort), u.Hostname(), config, startingWithin)
}
