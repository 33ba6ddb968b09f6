package driver

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// keyNames are the keys in a Secret.
type keyNames struct{ certificate, key, authorities string }

// standardKeys are those of every TLS Secret.
var standardKeys = keyNames{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt"}

// secretRef is a Secret named in the spec, with its keys in the legacy API.
type secretRef struct {
	field, name string
	legacy      keyNames
}

func secretRefs(want *etcdv1.EtcdCluster) []secretRef {
	named := want.Spec.TLS.Secrets
	if named == nil {
		return nil
	}
	all := []secretRef{
		{"peer", named.Peer, keyNames{"peer.crt", "peer.key", "peer-ca.crt"}},
		{"server", named.Server, keyNames{"server.crt", "server.key", "server-ca.crt"}},
		{"client", named.Client, keyNames{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"}},
	}
	return slices.DeleteFunc(all, func(u secretRef) bool { return u.name == "" })
}

// userSecret is one of users' own Secrets, as read.
type userSecret struct {
	secretRef
	secret  *corev1.Secret
	legacy  bool
	absent  bool
	problem string
}

func (h userSecret) keyNames() keyNames {
	if h.legacy {
		return h.secretRef.legacy
	}
	return standardKeys
}

// readSecrets reads users' own Secrets.
func (d *Driver) readSecrets(ctx context.Context, want *etcdv1.EtcdCluster) ([]userSecret, error) {
	var all []userSecret
	for _, u := range secretRefs(want) {
		s := &corev1.Secret{}
		err := d.live.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: u.name}, s)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read the Secret %q: %w", u.name, err)
		}
		all = append(all, userSecret{secretRef: u, secret: s, legacy: isLegacy(s, u), absent: err != nil})
	}
	return all, nil
}

// ownKeys validates users' own Secrets.
func ownKeys(all []userSecret, want *etcdv1.EtcdCluster, now time.Time) keys {
	for i, h := range all {
		all[i].problem = cmp.Or(h.validate(h.absent, now), h.unpeered(namesForPeers(want)))
	}
	k := combine(all)
	if k.problem == "" {
		k.problem = untrusted(all, want.Spec.Size > 1)
	}
	return k
}

// combine returns the keys of all Secrets. etcd's flags support one kind of key names.
func combine(all []userSecret) keys {
	var k keys
	var authorities [][]byte
	for _, h := range all {
		if h.problem == "" && h.legacy != all[0].legacy {
			h.problem = h.problemf("has other keys than the rest. Use tls.crt, tls.key and ca.crt in all of them.")
		}
		k.problem = cmp.Or(k.problem, h.problem)
		k.legacy, k.unknown = k.legacy || h.legacy, k.unknown || len(h.secret.Data[h.keyNames().certificate]) == 0
		if h.field == "peer" && h.problem == "" {
			k.peers, _ = configure(bundleOf(h.secret, h.keyNames())) // it has been validated
		}
		if h.field != "client" {
			authorities = append(authorities, h.secret.Data[h.keyNames().authorities])
			continue
		}
		config, err := configure(bundleOf(h.secret, h.keyNames()))
		k.config, k.missing, k.digest = config, err != nil, digest(h.secret.Data)
	}
	if k.problem == "" {
		k.trust = etcd.Trust(authorities)
	}
	return k
}

func isLegacy(s *corev1.Secret, u secretRef) bool {
	_, modernKey := s.Data[standardKeys.certificate]
	_, legacyKey := s.Data[u.legacy.certificate]
	return legacyKey && !modernKey
}

func bundleOf(s *corev1.Secret, l keyNames) bundle {
	return bundle{s.Data[l.certificate], s.Data[l.key], s.Data[l.authorities]}
}

// problemf begins with the field that names the Secret.
func (h userSecret) problemf(format string, args ...any) string {
	return fmt.Sprintf("spec.tls.secrets.%s: the Secret %q ", h.field, h.name) + fmt.Sprintf(format, args...)
}

// validate describes the Secret's problem and the remedy; it is empty for a valid Secret.
func (h userSecret) validate(absent bool, now time.Time) string {
	if absent {
		return h.problemf("does not exist. Create it; Governor starts no member until then.")
	}
	l := h.keyNames()
	for _, key := range []string{l.certificate, l.key, l.authorities} {
		if len(h.secret.Data[key]) == 0 {
			return h.problemf("has no key %q. It needs %q, %q and %q.", key, l.certificate, l.key, l.authorities)
		}
	}
	b := bundleOf(h.secret, l)
	pair, err := tls.X509KeyPair(b.certificate, b.key)
	if err != nil {
		return h.problemf("cannot be used: %q and %q are not a certificate in PEM with its key.", l.certificate, l.key)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(b.authorities) {
		return h.problemf("cannot be used: %q has no certificate in PEM.", l.authorities)
	}
	if pair.Leaf != nil && now.After(pair.Leaf.NotAfter) {
		return h.problemf("has a certificate that expired on %s. Renew it.", pair.Leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	return ""
}

// unpeered describes why members would refuse each other with a valid peer certificate.
func (h userSecret) unpeered(names peerNames) string {
	if h.field != "peer" {
		return ""
	}
	b := bundleOf(h.secret, h.keyNames())
	pair, err := tls.X509KeyPair(b.certificate, b.key)
	if err != nil {
		return ""
	}
	lacks := names.missing(pair.Leaf)
	if lacks == "" {
		return ""
	}
	return h.problemf("has a certificate for %s, with which etcd's members refuse each other. Issue it for %q too.", strings.Join(pair.Leaf.DNSNames, ", "), lacks)
}
