package driver

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// Another default quota is no edit of the StatefulSet.
func TestKeepQuota(t *testing.T) {
	with := func(args ...string) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{}
		s.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
		return s
	}
	cases := map[string]struct{ has, want []string }{
		"Same":    {[]string{"--a", "--quota-backend-bytes=2"}, []string{"--a", "--quota-backend-bytes=2"}},
		"Another": {[]string{"--a", "--quota-backend-bytes=1"}, []string{"--a", "--quota-backend-bytes=1"}},
		"None":    {[]string{"--a"}, []string{"--a"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			declared := with("--a", "--quota-backend-bytes=2")
			keepQuota(&etcdv1.EtcdCluster{}, declared, with(c.has...))
			if got := declared.Spec.Template.Spec.Containers[0].Args; !slices.Equal(got, c.want) {
				t.Errorf("the declared flags are %v", got)
			}
		})
	}
}
