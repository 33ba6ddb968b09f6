package chaos_test

import (
	"testing"

	etcdchaos "github.com/governor-dev/governor/apps/etcd/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

func TestCatalogueIsValidAndWide(t *testing.T) {
	all := etcdchaos.Catalogue()
	if err := all.Validate(); err != nil {
		t.Error(err)
	}
	kinds := map[string]bool{}
	for _, m := range all {
		kinds[m.Object.Kind] = true
	}
	for _, kind := range []string{
		"Pod", "PersistentVolumeClaim", "StatefulSet", "Service", "EndpointSlice", "ConfigMap", "Secret", "PodDisruptionBudget", "NetworkPolicy",
		"EtcdCluster", "Lease", "ControllerRevision", "Node", "APIServer", "Disk", "Operator", "Etcd",
	} {
		if !kinds[kind] {
			t.Errorf("nothing is done to a %s", kind)
		}
	}
	t.Logf("%d manipulations of %d kinds, %d of them safe", len(all), len(kinds), len(all.Safe()))
}

// No manipulation deletes the instance: that is what a user declares.
func TestNoManipulationDeletesTheInstance(t *testing.T) {
	for _, m := range etcdchaos.Catalogue() {
		if m.Object.Kind == "EtcdCluster" && (m.Verb == chaos.VerbDelete || m.DestroysCopy(true)) {
			t.Errorf("%s deletes the instance", m.Name)
		}
	}
}
