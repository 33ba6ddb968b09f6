package etcd_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// A plan includes a new authority before it exists, and assumes nothing about unknown ones.
func TestWithResources(t *testing.T) {
	secret := func(name, authority string) lifecycle.Object {
		s := &corev1.Secret{Data: map[string][]byte{lifecycle.KeyAuthorities: []byte(authority)}}
		s.Name = name
		return s
	}
	managed, plain := wanted(3), wanted(3)
	managed.Spec.TLS.Mode, plain.Spec.TLS.Mode = etcdv1.TLSModeManaged, etcdv1.TLSModeDisabled
	names := etcd.Authorities(managed)
	cases := map[string]struct {
		reason  string
		want    *etcdv1.EtcdCluster
		objects []lifecycle.Object
		trust   string
	}{
		"Both":  {"both are trusted", managed, []lifecycle.Object{secret(names[1], "b"), secret("other", "c"), secret(names[0], "a")}, etcd.Trust([][]byte{[]byte("a"), []byte("b")})},
		"One":   {"one is unknown", managed, []lifecycle.Object{secret(names[0], "a")}, "before"},
		"Empty": {"an empty one is unknown", managed, []lifecycle.Object{secret(names[0], "a"), secret(names[1], "")}, "before"},
		"Plain": {"without encryption there is no trust", plain, []lifecycle.Object{secret(names[0], "a"), secret(names[1], "b")}, "before"},
		"None":  {"without Secrets nothing changes", managed, nil, "before"},
	}
	for name, c := range cases {
		seen := etcd.World{Trust: "before"}
		if got := (etcd.Planner{}).WithResources(c.want, seen, c.objects).Trust; got != c.trust {
			t.Errorf("%s: %s: %q, want %q", name, c.reason, got, c.trust)
		}
	}
}
