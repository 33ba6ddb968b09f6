package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
)

// manifest writes the cluster in v1beta2 as in a user's file: without status and annotations.
func (c *cluster) manifest(t *testing.T, edit func(*v1beta2.ClusterSpec)) string {
	t.Helper()
	now := &v1beta2.EtcdCluster{}
	if err := api.Get(t.Context(), c.key, now); err != nil {
		t.Fatal(err)
	}
	edit(&now.Spec)
	raw, err := json.Marshal(map[string]any{
		"apiVersion": v1beta2.GroupVersion.String(), "kind": "EtcdCluster",
		"metadata": map[string]any{"name": c.key.Name}, "spec": now.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "old.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// secrets is the data of each Secret in the namespace.
func (c *cluster) secrets(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	all := &corev1.SecretList{}
	if err := api.List(t.Context(), all, client.InNamespace(c.key.Namespace)); err != nil {
		t.Fatal(err)
	}
	held := map[string]map[string][]byte{}
	for _, s := range all.Items {
		held[s.Name] = s.Data
	}
	return held
}

// TestEtcdReplacedInTheLegacyAPIKeepsItsState: an old manifest changes only what it can express.
// The cluster continues to serve with its certificates and its status.bootstrap.
func TestEtcdReplacedInTheLegacyAPIKeepsItsState(t *testing.T) {
	c := formed(t, 1, func(spec *etcdv1.EtcdClusterSpec) {
		spec.TLS.Mode, spec.Options.SnapshotCount = etcdv1.TLSModeManaged, 5000
	})
	before, secrets := c.get(t), c.secrets(t)
	w := c.write(t, c.withKeys(t, before.Status.ClientSecretName))
	must(t, "-n", c.key.Namespace, "replace", "-f", c.manifest(t, func(s *v1beta2.ClusterSpec) { s.Size = 3 }))
	after := c.settled(t)
	if len(after.Status.Members) != 3 || after.Spec.TLS.Mode != etcdv1.TLSModeManaged || after.Spec.Options.SnapshotCount != 5000 {
		t.Errorf("it is now %+v", after.Spec)
	}
	if was, is := before.Status.Bootstrap, after.Status.Bootstrap; was.Token != is.Token || before.Status.ClusterID != after.Status.ClusterID {
		t.Errorf("it is another cluster: %+v, %+v", was, is)
	}
	now := c.secrets(t)
	for name, data := range secrets {
		if !reflect.DeepEqual(now[name], data) {
			t.Errorf("Secret %s was written or removed", name)
		}
	}
	kept(t, w)
}
