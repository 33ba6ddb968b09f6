package driver

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// layout names the keys of a Secret.
type layout struct{ certificate, key, authorities string }

// modern keys are those of every TLS Secret.
var modern = layout{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt"}

// use is a Secret that the spec names, and the keys that the legacy API gave it.
type use struct {
	field, name string
	legacy      layout
}

func uses(want *etcdv1.EtcdCluster) []use {
	named := want.Spec.TLS.Secrets
	if named == nil {
		return nil
	}
	all := []use{
		{"peer", named.Peer, layout{"peer.crt", "peer.key", "peer-ca.crt"}},
		{"server", named.Server, layout{"server.crt", "server.key", "server-ca.crt"}},
		{"client", named.Client, layout{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"}},
	}
	return slices.DeleteFunc(all, func(u use) bool { return u.name == "" })
}

// held is one of users' own Secrets, as it was found.
type held struct {
	use
	secret  *corev1.Secret
	legacy  bool
	problem string
}

func (h held) layout() layout {
	if h.legacy {
		return h.use.legacy
	}
	return modern
}

// ownKeys reads and judges users' own Secrets.
func (d *Driver) ownKeys(ctx context.Context, want *etcdv1.EtcdCluster, now time.Time) (keys, error) {
	var all []held
	for _, u := range uses(want) {
		s := &corev1.Secret{}
		err := d.live.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: u.name}, s)
		if client.IgnoreNotFound(err) != nil {
			return keys{}, fmt.Errorf("cannot read the Secret %q: %w", u.name, err)
		}
		h := held{use: u, secret: s, legacy: isLegacy(s, u)}
		h.problem = h.judge(apierrors.IsNotFound(err), now)
		all = append(all, h)
	}
	return together(all), nil
}

// together are the keys of all Secrets. etcd is told of one kind of keys.
func together(all []held) keys {
	var k keys
	var authorities [][]byte
	for _, h := range all {
		if h.problem == "" && h.legacy != all[0].legacy {
			h.problem = h.says("has other keys than the rest. Use tls.crt, tls.key and ca.crt in all.")
		}
		k.problem = cmp.Or(k.problem, h.problem)
		k.legacy = k.legacy || h.legacy
		if h.field == "peer" && h.problem == "" {
			k.peers, _ = configure(bundleOf(h.secret, h.layout())) // it was judged
		}
		if h.field != "client" {
			authorities = append(authorities, h.secret.Data[h.layout().authorities])
			continue
		}
		config, err := configure(bundleOf(h.secret, h.layout()))
		k.config, k.missing, k.digest = config, err != nil, digest(h.secret.Data)
	}
	if k.problem == "" {
		k.trust = etcd.Trust(authorities)
	}
	return k
}

func isLegacy(s *corev1.Secret, u use) bool {
	_, modernKey := s.Data[modern.certificate]
	_, legacyKey := s.Data[u.legacy.certificate]
	return legacyKey && !modernKey
}

func bundleOf(s *corev1.Secret, l layout) bundle {
	return bundle{s.Data[l.certificate], s.Data[l.key], s.Data[l.authorities]}
}

// says begins with where the Secret is named.
func (h held) says(format string, args ...any) string {
	return fmt.Sprintf("spec.tls.secrets.%s: the Secret %q ", h.field, h.name) + fmt.Sprintf(format, args...)
}

// judge says what is wrong with the Secret, and what to do; empty if nothing.
func (h held) judge(absent bool, now time.Time) string {
	if absent {
		return h.says("does not exist. Create it; nothing is started until then.")
	}
	l := h.layout()
	for _, key := range []string{l.certificate, l.key, l.authorities} {
		if len(h.secret.Data[key]) == 0 {
			return h.says("has no key %q. It needs %q, %q and %q.", key, l.certificate, l.key, l.authorities)
		}
	}
	b := bundleOf(h.secret, l)
	pair, err := tls.X509KeyPair(b.certificate, b.key)
	if err != nil {
		return h.says("cannot be used: %q and %q are not a certificate in PEM with its key.", l.certificate, l.key)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(b.authorities) {
		return h.says("cannot be used: %q has no certificate in PEM.", l.authorities)
	}
	if pair.Leaf != nil && now.After(pair.Leaf.NotAfter) {
		return h.says("has a certificate that expired on %s. Renew it.", pair.Leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	return ""
}
