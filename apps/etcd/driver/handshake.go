package driver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

const peerPort = "2380"

// verdict is what a handshake says about the certificates of both sides; it is empty if
// it came to none.
type verdict string

const (
	accepted verdict = "Accepted"
	refused  verdict = "Refused"
)

// shake says whether each side knows the authority of the other's certificate. The
// operator shows its own only to a member whose certificate it believes, and sends
// nothing but a question for the version.
func shake(ctx context.Context, address, name string, config *tls.Config, within time.Duration) verdict {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	config = config.Clone()
	config.ServerName = name
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return judge(err)
	}
	defer func() { _ = conn.Close() }()
	// With TLS 1.3 the member judges our certificate after our side of the handshake. It
	// is given time to say so before it is asked anything: what it has not read when it
	// closes the connection may cost its last words.
	hears, stop := context.WithTimeout(ctx, within/4)
	defer stop()
	untilDone(hears, conn.SetReadDeadline)
	if _, err = conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return judge(err)
	}
	untilDone(ctx, conn.SetDeadline)
	if _, err := fmt.Fprintf(conn, "GET /version HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name); err != nil {
		return judge(err)
	}
	_, err = conn.Read(make([]byte, 1))
	return judge(err)
}

// untilDone sets the context's deadline.
func untilDone(ctx context.Context, set func(time.Time) error) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = set(deadline)
	}
}

// judge reads the verdict of either side. A member that closes the connection without an
// alert knows the authority: etcd does so when the caller is none of the names in its
// certificate. The alerts of crypto/tls have no exported type.
func judge(err error) verdict {
	var ours x509.UnknownAuthorityError
	var theirs *net.OpError
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return accepted
	case errors.As(err, &ours):
		return refused
	case errors.As(err, &theirs) && theirs.Op == "remote error":
		alert := theirs.Err.Error()
		if strings.Contains(alert, "unknown certificate authority") || strings.Contains(alert, "bad certificate") {
			return refused
		}
	}
	return ""
}

// askPeerPorts finds out how members and the present certificates of their peers get on.
// Only those that run with other authorities, or do not answer, are asked: none at rest.
func (d *Driver) askPeerPorts(ctx context.Context, want *etcdv1.EtcdCluster, p parts, k keys, members []etcd.Member) {
	var group sync.WaitGroup
	for i := range members {
		m := &members[i]
		running := p.pods[m.Name]
		if running == nil || running.Status.PodIP == "" || !etcd.OtherAuthorities(*m, k.trust) && m.Health != etcd.Unknown {
			continue
		}
		group.Go(func() {
			v := d.peerPort(ctx, want, running, m.Name, k)
			m.PeersRefused, m.PeersAccepted = v == refused, v == accepted
		})
	}
	group.Wait()
}

func (d *Driver) peerPort(ctx context.Context, want *etcdv1.EtcdCluster, running *corev1.Pod, member string, k keys) verdict {
	config, secret := k.peers, etcd.PeerSecret(want, member)
	if config == nil && secret != "" && want.Spec.TLS.Mode != etcdv1.Secrets {
		config = d.peerConfig(ctx, want, member)
	}
	u, err := url.Parse(etcd.PeerURL(want, member))
	if err != nil || config == nil {
		return ""
	}
	return shake(ctx, net.JoinHostPort(running.Status.PodIP, peerPort), u.Hostname(), config, startingWithin)
}

// peerConfig is what the member shows its peers, of the Secret that Governor makes; nil
// if there is none yet.
func (d *Driver) peerConfig(ctx context.Context, want *etcdv1.EtcdCluster, member string) *tls.Config {
	s, err := d.minted(ctx, want, etcd.PeerSecret(want, member))
	if err != nil || s == nil {
		return nil
	}
	config, err := configure(bundleOf(s, modern))
	if err != nil {
		return nil
	}
	return config
}
