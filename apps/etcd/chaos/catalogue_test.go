package chaos_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
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

// A user deletes the instance with each propagation policy, and creates it again. Only that deletes it,
// and kubectl governor chaos never does.
func TestDeletionsOfTheInstance(t *testing.T) {
	all, deletes := etcdchaos.Catalogue(), 0
	for _, policy := range []string{"background", "foreground", "orphan"} {
		for _, verb := range []string{"delete", "recreate"} {
			if m, ok := all.Named("etcdcluster-" + verb + "-" + policy); !ok || !m.DeletesInstance() || m.Safe || m.DestroysCopy(true) {
				t.Errorf("%s with %s: %+v", verb, policy, m)
			}
		}
	}
	for _, m := range all {
		if m.DeletesInstance() {
			deletes++
		}
	}
	if deletes != 6 {
		t.Errorf("%d manipulations delete the instance, want 6", deletes)
	}
}

// Every field of the spec has at least one manipulation that sets it.
func TestEveryFieldOfTheSpecIsEdited(t *testing.T) {
	var patches []map[string]any
	for _, m := range etcdchaos.Catalogue() {
		if m.Object.Kind != "EtcdCluster" || m.Object.APIVersion != etcdv1.GroupVersion.String() || m.Verb != chaos.VerbPatch {
			continue
		}
		var patch map[string]any
		if err := json.Unmarshal([]byte(m.Patch), &patch); err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		patches = append(patches, patch)
	}
	for _, path := range leaves(reflect.TypeFor[etcdv1.EtcdClusterSpec](), "") {
		if !slices.ContainsFunc(patches, func(p map[string]any) bool { return sets(p, "spec."+path) }) {
			t.Errorf("nothing edits spec.%s", path)
		}
	}
}

// leaves are the paths of the fields. Types of other packages are leaves as a whole.
func leaves(of reflect.Type, before string) (all []string) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		kind := of.Field(i).Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct && kind.PkgPath() == of.PkgPath() {
			all = append(all, leaves(kind, before+name+".")...)
			continue
		}
		all = append(all, before+name)
	}
	return all
}

func sets(patch map[string]any, path string) bool {
	first, rest, deeper := strings.Cut(path, ".")
	value, ok := patch[first]
	inner, isMap := value.(map[string]any)
	return ok && (!deeper || isMap && sets(inner, rest))
}
