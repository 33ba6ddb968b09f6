package etcd_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// A change that can cost data or writes passes only with a warning.
func TestWarningsOfDangerousChanges(t *testing.T) {
	edited := func(edit func(*etcdv1.EtcdClusterSpec)) *etcdv1.EtcdCluster {
		c := wanted(3)
		c.Spec.Version = "3.6"
		edit(&c.Spec)
		return c
	}
	plain := edited(func(*etcdv1.EtcdClusterSpec) {})
	quota := func(size, database string) *etcdv1.EtcdCluster {
		c, q, used := plain.DeepCopy(), resource.MustParse(size), resource.MustParse(database)
		c.Spec.Options.Quota = &q
		c.Status.Members = []etcdv1.MemberStatus{{Name: "e-0", DBSize: &used}}
		return c
	}
	flag := func(version string, args ...string) *etcdv1.EtcdCluster {
		return edited(func(s *etcdv1.EtcdClusterSpec) { s.Version, s.Pod.Args = version, args })
	}
	unsafe := flag("3.6", "--unsafe-no-fsync")
	variable := edited(func(s *etcdv1.EtcdClusterSpec) {
		s.Pod.Env = []corev1.EnvVar{{Name: "ETCD_UNSAFE_NO_FSYNC", Value: "true"}}
	})
	experimental := "--experimental-watch-progress-notify-interval=5s"
	for name, c := range map[string]struct {
		old, want *etcdv1.EtcdCluster
		says      string
	}{
		"Quota":             {plain, quota("16Mi", "40Mi"), "spec.options.quota: 16Mi is too small for the database of e-0, which has 40Mi"},
		"QuotaFits":         {plain, quota("1Gi", "40Mi"), ""},
		"QuotaGrows":        {quota("16Mi", "40Mi"), quota("32Mi", "40Mi"), ""},
		"Unsafe":            {plain, unsafe, "spec.pod.args --unsafe-no-fsync: etcd does not wait for its disk"},
		"UnsafeNew":         {nil, unsafe, "spec.pod.args --unsafe-no-fsync"},
		"UnsafeStill":       {unsafe, unsafe, ""},
		"UnsafeOff":         {plain, flag("3.6", "--unsafe-no-fsync=false"), ""},
		"UnsafeVariable":    {plain, variable, "spec.pod.env ETCD_UNSAFE_NO_FSYNC"},
		"Experimental":      {flag("3.6", experimental), flag("3.7", experimental), "etcd 3.7 has no experimental flags"},
		"ExperimentalStill": {flag("3.7", experimental), flag("3.7", experimental), ""},
		"ExperimentalEarly": {plain, flag("3.6", experimental), ""},
	} {
		said := strings.Join(etcd.Planner{}.Warnings(c.old, c.want), "; ")
		if c.says == "" && said != "" || !strings.Contains(said, c.says) {
			t.Errorf("%s: it warns %q, want %q", name, said, c.says)
		}
	}
}
