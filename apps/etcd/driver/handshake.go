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

// verdict is what a handshake shows about the certificates of both sides; empty if it shows
// nothing.
type verdict string

const (
	accepted verdict = "Accepted"
	refused  verdict = "Refused"
)

// handshake reports whether each side trusts the authority of the other's certificate. The
// operator presents its own only to a member whose certificate it trusts, and sends nothing but
// a request for the version.
func handshake(ctx context.Context, address, name string, config *tls.Config, within time.Duration) verdict {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	config = config.Clone()
	config.ServerName = name
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return verdictOf(err)
	}
	defer func() { _ = conn.Close() }()
	// With TLS 1.3 the member verifies our certificate after our side of the handshake. It gets
	// time to report a failure before the request: unread data at its close of the connection
	// may discard its alert.
	alertCtx, stop := context.WithTimeout(ctx, within/4)
	defer stop()
	setDeadline(alertCtx, conn.SetReadDeadline)
	if _, err = conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return verdictOf(err)
	}
	setDeadline(ctx, conn.SetDeadline)
	if _, err := fmt.Fprintf(conn, "GET /version HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name); err != nil {
		return verdictOf(err)
	}
	_, err = conn.Read(make([]byte, 1))
	return verdictOf(err)
}

// setDeadline sets the context's deadline.
func setDeadline(ctx context.Context, set func(time.Time) error) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = set(deadline)
	}
}

// verdictOf derives the verdict of either side. A member that closes the connection without an
// alert trusts the authority: etcd does so if the caller has none of the names in its
// certificate. The alerts of crypto/tls have no exported type.
func verdictOf(err error) verdict {
	var ours x509.UnknownAuthorityError
	var theirs *net.OpError
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return accepted
	case errors.As(err, &ours):
		return refused
	case errors.As(err, &theirs) && theirs.Op == "remote error":
		alert := theirs.Err.Error()
		for _, refusal := range []string{"unknown certificate authority", "bad certificate", "certificate required"} {
			if strings.Contains(alert, refusal) {
				return refused
			}
		}
	}
	return ""
}

// checkPeerPorts checks whether members and the current certificates of their peers accept each
// other. It checks only members that run with other authorities or do not answer: none in a
// settled cluster.
func (d *Driver) checkPeerPorts(ctx context.Context, want *etcdv1.EtcdCluster, p parts, k keys, members []etcd.Member) {
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
	if config == nil && secret != "" && want.Spec.TLS.Mode != etcdv1.TLSModeSecrets {
		config = d.peerConfig(ctx, want, member)
	}
	u, err := url.Parse(etcd.PeerURL(want, member))
	if err != nil || config == nil {
		return ""
	}
	return handshake(ctx, net.JoinHostPort(running.Status.PodIP, peerPort), u.Hostname(), config, startingWithin)
}

// peerConfig is the member's own peer certificate, from the Secret that Governor issues; nil if
// there is none yet.
func (d *Driver) peerConfig(ctx context.Context, want *etcdv1.EtcdCluster, member string) *tls.Config {
	s, err := d.issuedSecret(ctx, want, etcd.PeerSecret(want, member))
	if err != nil || s == nil {
		return nil
	}
	config, err := configure(bundleOf(s, standardKeys))
	if err != nil {
		return nil
	}
	return config
}
