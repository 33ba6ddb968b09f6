package driver

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/kube/pki"
)

// certified is a Secret's data with a certificate of its own that is good for a day.
func certified(t *testing.T, l layout, now time.Time) map[string][]byte {
	t.Helper()
	pair := selfSigned(t, now)
	return map[string][]byte{l.certificate: pair.certificate, l.key: pair.key, l.authorities: pair.certificate}
}

func owned() *etcdv1.EtcdCluster {
	c := &etcdv1.EtcdCluster{}
	c.Spec.TLS = etcdv1.TLSSpec{Mode: etcdv1.Secrets, Secrets: &etcdv1.TLSSecrets{Peer: "p", Server: "s", Client: "c"}}
	return c
}

func TestUsersOwnSecrets(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	legacy := func(u use) map[string][]byte { return certified(t, u.legacy, now) }
	without := func(key string) func(use) map[string][]byte {
		return func(use) map[string][]byte {
			data := certified(t, modern, now)
			delete(data, key)
			return data
		}
	}
	cases := map[string]struct {
		reason string
		server func(use) map[string][]byte // of one Secret; the others are good
		later  time.Duration
		want   string
	}{
		"Good":   {"the keys of every TLS Secret", func(use) map[string][]byte { return certified(t, modern, now) }, 0, ""},
		"Absent": {"the field, the name and what to do", nil, 0, `spec.tls.secrets.server: the Secret "s" does not exist. Create it`},
		"NoKey":  {"what is missing is named", without("tls.key"), 0, `has no key "tls.key". It needs "tls.crt", "tls.key" and "ca.crt"`},
		"NoCA":   {"an authority is needed, too", without("ca.crt"), 0, `has no key "ca.crt"`},
		"Mismatch": {"a key of another certificate", func(use) map[string][]byte {
			data := certified(t, modern, now)
			data["tls.key"] = selfSigned(t, now).key
			return data
		}, 0, "are not a certificate in PEM with its key"},
		"Garbage": {"an authority that is none", func(use) map[string][]byte {
			data := certified(t, modern, now)
			data["ca.crt"] = []byte("hello")
			return data
		}, 0, `"ca.crt" has no certificate in PEM`},
		"Expired": {"a certificate that has ended", func(use) map[string][]byte { return certified(t, modern, now) }, 48 * time.Hour, "expired on 2023-11-15. Renew it."},
		"Mixed":   {"etcd is told of one kind of keys", legacy, 0, "has other keys than the rest"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var all []held
			for _, u := range uses(owned()) {
				s := &corev1.Secret{Data: certified(t, modern, now.Add(c.later))}
				switch absent := c.server == nil; {
				case u.field == "server" && absent:
					s.Data = nil
				case u.field == "server":
					s.Data = c.server(u)
				}
				h := held{use: u, secret: s, legacy: isLegacy(s, u)}
				h.problem = h.judge(u.field == "server" && c.server == nil, now.Add(c.later))
				all = append(all, h)
			}
			k := together(all)
			if !strings.Contains(k.problem, c.want) || (c.want == "") != (k.problem == "") {
				t.Errorf("%s: got %q, want %q", c.reason, k.problem, c.want)
			}
			if (k.trust != "") != (c.want == "") || k.config == nil {
				t.Errorf("trust %q, config %v: authorities are known when nothing is wrong, and the operator asks as long as its own certificate is good", k.trust, k.config)
			}
		})
	}
}

func TestLegacyKeys(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var all []held
	for _, u := range uses(owned()) {
		s := &corev1.Secret{Data: certified(t, u.legacy, now)}
		h := held{use: u, secret: s, legacy: isLegacy(s, u)}
		h.problem = h.judge(false, now)
		all = append(all, h)
	}
	if k := together(all); !k.legacy || k.problem != "" || k.config == nil {
		t.Errorf("the keys of the older API are understood, got %+v", k)
	}
}

// selfSigned is good for a day.
func selfSigned(t *testing.T, now time.Time) bundle {
	t.Helper()
	pair, err := pki.Issue(&x509.Certificate{NotBefore: now, NotAfter: now.Add(24 * time.Hour)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.Key()
	if err != nil {
		t.Fatal(err)
	}
	return bundle{pki.Encode(pair.Certificate), key, nil}
}
