package driver

import (
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

// ownKeys reads and judges users' own Secrets.
func (d *Driver) ownKeys(ctx context.Context, want *etcdv1.EtcdCluster, now time.Time) (keys, error) {
	var k keys
	var members []*corev1.Secret
	var layouts []layout
	for i, u := range uses(want) {
		s := &corev1.Secret{}
		err := d.live.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: u.name}, s)
		if client.IgnoreNotFound(err) != nil {
			return keys{}, fmt.Errorf("cannot read the Secret %q: %w", u.name, err)
		}
		legacy := isLegacy(s, u)
		problem := judge(s, u, legacy, apierrors.IsNotFound(err), now)
		if i > 0 && problem == "" && legacy != k.legacy {
			problem = fmt.Sprintf("spec.tls.secrets.%s: the Secret %q has other keys than the rest. Use tls.crt, tls.key and ca.crt in all.", u.field, u.name)
		}
		if k.problem == "" {
			k.problem = problem
		}
		k.legacy = legacy
		if u.field == "client" {
			k.digest = digest(s.Data)
			if k.config, err = configure(bundleOf(s, chosen(u, legacy))); err != nil {
				k.missing = true
			}
			continue
		}
		members, layouts = append(members, s), append(layouts, chosen(u, legacy))
	}
	if k.problem == "" {
		k.trust = trusted(members, layouts...)
	}
	return k, nil
}

func isLegacy(s *corev1.Secret, u use) bool {
	_, modernKey := s.Data[modern.certificate]
	_, legacyKey := s.Data[u.legacy.certificate]
	return legacyKey && !modernKey
}

func chosen(u use, legacy bool) layout {
	if legacy {
		return u.legacy
	}
	return modern
}

func bundleOf(s *corev1.Secret, l layout) bundle {
	return bundle{s.Data[l.certificate], s.Data[l.key], s.Data[l.authorities]}
}

// judge says what is wrong with the Secret, and what to do; empty if nothing.
func judge(s *corev1.Secret, u use, legacy, absent bool, now time.Time) string {
	said := func(format string, args ...any) string {
		return fmt.Sprintf("spec.tls.secrets.%s: the Secret %q ", u.field, u.name) + fmt.Sprintf(format, args...)
	}
	if absent {
		return said("does not exist. Create it; nothing is started until then.")
	}
	l := chosen(u, legacy)
	for _, key := range []string{l.certificate, l.key, l.authorities} {
		if len(s.Data[key]) == 0 {
			return said("has no key %q. It needs %q, %q and %q.", key, l.certificate, l.key, l.authorities)
		}
	}
	b := bundleOf(s, l)
	pair, err := tls.X509KeyPair(b.certificate, b.key)
	if err != nil {
		return said("cannot be used: %q and %q are not a certificate in PEM with its key.", l.certificate, l.key)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(b.authorities) {
		return said("cannot be used: %q has no certificate in PEM.", l.authorities)
	}
	if pair.Leaf != nil && now.After(pair.Leaf.NotAfter) {
		return said("has a certificate that expired on %s. Renew it.", pair.Leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	return ""
}
