package envtest_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// With the example for tenants, a user cannot read a Secret through an EtcdCluster.
func TestTenantsCannotReadSecretsThroughEtcd(t *testing.T) {
	applied(t, "../../examples/etcd-tenants.yaml")
	namespace := newNamespace(t)
	grant(t, namespace, "edit", rbacv1.PolicyRule{
		APIGroups: []string{etcdv1.GroupVersion.Group}, Resources: []string{"etcdclusters"}, Verbs: []string{"*"},
	}, "bob", "carol")
	grant(t, namespace, "secrets", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
	}, "carol")
	env := func(spec *etcdv1.EtcdClusterSpec) {
		spec.Pod.Env = []corev1.EnvVar{{Name: "PAY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "payroll"}, Key: "all",
		}}}}
	}
	makes := func(user string, edit func(*etcdv1.EtcdClusterSpec)) error {
		c := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "e"}, Spec: etcdv1.EtcdClusterSpec{Size: 1}}
		edit(&c.Spec)
		return asUser(t, user).Create(t.Context(), c, client.DryRunAll)
	}
	cases := map[string]struct {
		edit func(*etcdv1.EtcdClusterSpec)
		want string
	}{
		"Env": {env, "the EtcdCluster names Secrets (payroll), which needs the verb \"get\" on secrets in the namespace " + namespace},
		"TLS": {func(s *etcdv1.EtcdClusterSpec) {
			s.TLS = etcdv1.TLSSpec{Mode: "Secrets", Secrets: &etcdv1.TLSSecrets{Server: "payroll", Peer: "payroll", Client: "payroll"}}
		}, "names Secrets (payroll, payroll, payroll)"},
		"Image":      {func(s *etcdv1.EtcdClusterSpec) { s.Version, s.Image = "3.6.16", "evil.example/etcd:1" }, "spec.image must begin with quay.io/coreos/"},
		"Repository": {func(s *etcdv1.EtcdClusterSpec) { s.Repository = "evil.example/etcd" }, "spec.repository must begin with"},
	}
	for name, c := range cases {
		eventually(t, name+" is refused", func() error {
			if err := makes("bob", c.edit); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.want) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	}
	eventually(t, "a user who may read Secrets may name them", func() error { return makes("carol", env) })
	must(t, makes("bob", func(*etcdv1.EtcdClusterSpec) {}))
}
