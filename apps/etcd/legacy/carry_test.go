package legacy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd/legacy"
)

// decoded is the object as JSON is decoded.
func decoded(t *testing.T, obj any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// through converts a v1 object to v1beta2, edits it there, and converts it back.
func through(t *testing.T, in map[string]any, edit func(old map[string]any)) map[string]any {
	t.Helper()
	old := one(t, legacy.FromV1, legacy.CarryV1, in)
	edit(old)
	return one(t, legacy.ToV1, legacy.RestoreV1, old)
}

func one[In, Out any](t *testing.T, convert func(*In) (*Out, error), carry func(in, out map[string]any) error, raw map[string]any) map[string]any {
	t.Helper()
	in := new(In)
	bytes, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(bytes, in); err != nil {
		t.Fatal(err)
	}
	out := decoded(t, hop(t, convert, in))
	if err := carry(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A replica of a former release knows not all fields of the definition.
func TestFieldsOfALaterReleaseAreKept(t *testing.T) {
	in := decoded(t, &etcdv1.EtcdCluster{TypeMeta: modern(t, 0).TypeMeta, Spec: etcdv1.EtcdClusterSpec{Size: 3, Image: "i", Version: "3.6"}})
	for _, path := range [][]string{{"spec", "later"}, {"spec", "storage", "later"}, {"status", "later"}, {"status", "version", "later"}} {
		if err := unstructured.SetNestedField(in, "x", path...); err != nil {
			t.Fatal(err)
		}
	}
	want := copyOf(in)
	differs(t, 0, "no change", want, through(t, copyOf(in), func(map[string]any) {}))
	got := through(t, copyOf(in), func(old map[string]any) {
		old["spec"].(map[string]any)["size"] = int64(5)
	})
	want["spec"].(map[string]any)["size"] = int64(5)
	differs(t, 0, "another size", want, got)
}

// A write through v1beta2 that changes nothing is no write: each byte is the same.
func TestEmptyChangeChangesNothing(t *testing.T) {
	for seed := range int64(seeds / 10) {
		in := decoded(t, modern(t, seed*2+1))
		differs(t, seed, "v1 only", copyOf(in), through(t, in, func(map[string]any) {}))
		in = one(t, legacy.ToV1, legacy.RestoreV1, decoded(t, filled(seed)))
		differs(t, seed, "written in v1beta2", copyOf(in), through(t, in, func(map[string]any) {}))
	}
}

func copyOf(in map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: in}).DeepCopy().Object
}
