package driver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/url"
	"sync"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// checkCertificates finds the members that present the certificates of their Secrets. etcd reads
// its files at each handshake, and the kubelet updates them within about a minute. It checks
// only while a revocation waits for it.
func (d *Driver) checkCertificates(ctx context.Context, want *etcdv1.EtcdCluster, p parts, k keys, members []etcd.Member) {
	if k.revocation != lifecycle.RevocationReplacing || k.config == nil {
		return
	}
	var group sync.WaitGroup
	for i := range members {
		m := &members[i]
		running := p.pods[m.Name]
		if running == nil || running.Status.PodIP == "" || m.Unmanaged {
			continue
		}
		group.Go(func() { m.Renewed = d.renewed(ctx, want, m.Name, running.Status.PodIP, k) })
	}
	group.Wait()
}

// renewed checks the client port with the operator's certificate, and the peer port with the
// member's own.
func (d *Driver) renewed(ctx context.Context, want *etcdv1.EtcdCluster, member, ip string, k keys) bool {
	peer := d.peerConfig(ctx, want, member)
	u, err := url.Parse(etcd.ClientURL(want, member))
	if err != nil || peer == nil {
		return false
	}
	client := d.presents(ctx, want, etcd.ServerSecret(want, member), net.JoinHostPort(ip, clientPort), u.Hostname(), k.config)
	return client && d.presents(ctx, want, etcd.PeerSecret(want, member), net.JoinHostPort(ip, peerPort), u.Hostname(), peer)
}

// presents reports whether the address presents the certificate of the Secret.
func (d *Driver) presents(ctx context.Context, want *etcdv1.EtcdCluster, secret, address, name string, config *tls.Config) bool {
	s, err := d.issuedSecret(ctx, want, secret)
	if err != nil || s == nil {
		return false
	}
	block, _ := pem.Decode(s.Data[standardKeys.certificate])
	return block != nil && bytes.Equal(block.Bytes, presentedBy(ctx, address, name, config))
}

// presentedBy is the certificate that the address presents in a handshake; nil if the handshake
// fails.
func presentedBy(ctx context.Context, address, name string, config *tls.Config) []byte {
	ctx, cancel := context.WithTimeout(ctx, startingWithin)
	defer cancel()
	config = config.Clone()
	config.ServerName = name
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	secured, ok := conn.(*tls.Conn)
	if !ok || len(secured.ConnectionState().PeerCertificates) == 0 {
		return nil
	}
	return secured.ConnectionState().PeerCertificates[0].Raw
}
