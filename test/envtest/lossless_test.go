package envtest_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
)

// modern uses every feature of v1 that v1beta2 cannot express.
const modern = `{size: 3, version: "3.6", storage: {retention: Retain, size: 2Gi}, options: {quota: 1Gi, snapshotCount: 7},
  pod: {args: ["--heartbeat-interval=200"], priorityClassName: high}, networkPolicy: {enabled: true}}`

// shown is the spec of modern in v1beta2, as in an old manifest.
const shown = `{size: %d, version: "3.6", pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}}`

// forged is a carrier that a client makes up.
const forged = `{"spec":{"size":99,"tls":{"mode":"Disabled"},"pod":{"args":["--name=x"]}},"status":{"bootstrap":{"token":"forged"}}}`

// observedStatus is a status that Governor wrote.
func observedStatus() etcdv1.EtcdClusterStatus {
	return etcdv1.EtcdClusterStatus{
		Phase: etcdv1.PhaseRunning, Replicas: 3, Version: etcdv1.VersionStatus{Current: "3.6.1", Target: "3.6.1"},
		Bootstrap:  &etcdv1.BootstrapStatus{Token: "t", InitialMembers: []string{"c-0"}, NextMember: 4, Formed: true},
		Members:    []etcdv1.MemberStatus{{Name: "c-0", Health: "Healthy"}, {Name: "c-3", Health: "Unknown"}},
		Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "AsDeclared", LastTransitionTime: metav1.Unix(0, 0)}},
	}
}

// makeModern creates the cluster in v1 with a status.
func (a *adviser) makeModern(t *testing.T) *etcdv1.EtcdCluster {
	t.Helper()
	must(t, strict().Create(t.Context(), etcdObject(t, "v1", "c", a.namespace, modern)))
	c, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, "c")
	must(t, err)
	c.Status = observedStatus()
	must(t, api.Status().Update(t.Context(), c))
	return c
}

// oldManifest returns the cluster as in a file of v1beta2: without status, and with the
// resourceVersion that kubectl replace adds.
func (a *adviser) oldManifest(t *testing.T, size int32, fields map[string]any) *unstructured.Unstructured {
	t.Helper()
	u := etcdObject(t, "v1beta2", "c", a.namespace, fmt.Sprintf(shown, size))
	maps.Copy(u.Object, fields)
	return u
}

// replaces writes the manifest as kubectl replace does.
func (a *adviser) replaces(t *testing.T, u *unstructured.Unstructured) error {
	t.Helper()
	now, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, "c")
	must(t, err)
	u.SetResourceVersion(now.ResourceVersion)
	return api.Update(t.Context(), u)
}

func applyAs(t *testing.T, u *unstructured.Unstructured) error {
	t.Helper()
	return api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"), client.ForceOwnership)
}

func annotated(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetAnnotations(map[string]string{"etcd.database.coreos.com/v1": forged, "etcd.database.coreos.com/v1beta2": forged})
	return u
}

var forgedStatus = map[string]any{"status": map[string]any{"phase": "Failed", "v1": forged}}

// A client of v1beta2 changes only what v1beta2 can express, with any verb, and with and
// without the fields that it has read.
func TestLegacyWriteLosesNothing(t *testing.T) {
	a := newConverter(t, time.Now())
	want := a.makeModern(t)
	patch := func(kind types.PatchType, text string) func(int32) error {
		return func(size int32) error {
			old := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: a.namespace}}
			return api.Patch(t.Context(), old, client.RawPatch(kind, fmt.Appendf(nil, text, size)))
		}
	}
	update := func(edit func(*v1beta2.EtcdCluster)) func(int32) error {
		return func(size int32) error {
			old, err := get(t, &v1beta2.EtcdCluster{}, a.namespace, "c")
			must(t, err)
			old.Spec.Size = size
			edit(old)
			return api.Update(t.Context(), old)
		}
	}
	ways := map[string]func(size int32) error{
		"update":                update(func(*v1beta2.EtcdCluster) {}),
		"update without status": update(func(c *v1beta2.EtcdCluster) { c.Status = v1beta2.ClusterStatus{} }),
		"update, forged":        update(func(c *v1beta2.EtcdCluster) { c.Status.V1 = forged }),
		"replace":               func(size int32) error { return a.replaces(t, a.oldManifest(t, size, nil)) },
		"replace, forged":       func(size int32) error { return a.replaces(t, annotated(a.oldManifest(t, size, forgedStatus))) },
		"merge patch":           patch(types.MergePatchType, `{"spec":{"size":%d}}`),
		"merge patch, forged":   patch(types.MergePatchType, `{"spec":{"size":%d},"status":{"v1":"{\"spec\":{\"size\":99}}"}}`),
		"merge patch, null":     patch(types.MergePatchType, `{"spec":{"size":%d},"status":null}`),
		"json patch":            patch(types.JSONPatchType, `[{"op":"replace","path":"/spec/size","value":%d}]`),
		"json patch, forged":    patch(types.JSONPatchType, `[{"op":"replace","path":"/spec/size","value":%d},{"op":"add","path":"/status/v1","value":"{}"}]`),
		"apply":                 func(size int32) error { return applyAs(t, a.oldManifest(t, size, nil)) },
		"apply, forged":         func(size int32) error { return applyAs(t, annotated(a.oldManifest(t, size, forgedStatus))) },
	}
	size := int32(3)
	for name, write := range ways {
		t.Run(name, func(t *testing.T) {
			size = size%9 + 1
			must(t, write(size))
			want.Spec.Size = size
			a.unharmed(t, want)
		})
	}
}

// unharmed fails if v1 is not as wanted.
func (a *adviser) unharmed(t *testing.T, want *etcdv1.EtcdCluster) {
	t.Helper()
	after, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, "c")
	must(t, err)
	after.Status.V1Beta2 = ""
	sameSpec(t, "the spec", after.Spec, want.Spec)
	sameSpec(t, "the status", after.Status, want.Status)
}

// A write of the status in v1beta2 changes neither the spec nor the status of v1.
func TestLegacyStatusWriteChangesNothingInV1(t *testing.T) {
	a := newConverter(t, time.Now())
	want := a.makeModern(t)
	const immutable = "status.v1 holds what v1beta2 cannot express and cannot be written in v1beta2"
	cases := map[string]struct {
		edit func(*v1beta2.EtcdCluster)
		want string
	}{
		"phase":   {func(c *v1beta2.EtcdCluster) { c.Status.Phase, c.Spec.Size = "Failed", 7 }, ""},
		"lost":    {func(c *v1beta2.EtcdCluster) { c.Status = v1beta2.ClusterStatus{Phase: "Failed"} }, immutable},
		"forged":  {func(c *v1beta2.EtcdCluster) { c.Status.V1 = forged }, immutable},
		"garbage": {func(c *v1beta2.EtcdCluster) { c.Status.V1 = "{" }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			old, err := get(t, &v1beta2.EtcdCluster{}, a.namespace, "c")
			must(t, err)
			c.edit(old)
			if err = api.Status().Update(t.Context(), old); name != "garbage" || err == nil {
				refused(t, name, c.want, err)
			}
			a.unharmed(t, want)
			patched := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: a.namespace}}
			_ = api.Status().Patch(t.Context(), patched, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed","v1":null}}`)))
			a.unharmed(t, want)
		})
	}
}

// A new object has no earlier state, even if its manifest claims one.
func TestNewLegacyObjectHasNoCarrier(t *testing.T) {
	a := newConverter(t, time.Now())
	ways := map[string]func(*unstructured.Unstructured) error{
		"create": func(u *unstructured.Unstructured) error { return api.Create(t.Context(), u) },
		"apply":  func(u *unstructured.Unstructured) error { return applyAs(t, u) },
	}
	for name, write := range ways {
		t.Run(name, func(t *testing.T) {
			u := annotated(a.oldManifest(t, 5, forgedStatus))
			u.SetName(name)
			must(t, write(u))
			got, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, name)
			must(t, err)
			if got.Spec.Size != 5 || len(got.Spec.Pod.Args) > 0 || got.Status.Bootstrap != nil || got.Status.Phase != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A client of v1 loses no field of v1beta2.
func TestV1WriteLosesNoLegacyField(t *testing.T) {
	a := newConverter(t, time.Now())
	want := fixture(t, "testdata/etcdcluster-full.yaml", a.namespace)
	must(t, strict().Create(t.Context(), want.DeepCopy()))
	plain := func() *unstructured.Unstructured {
		now, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, want.Name)
		must(t, err)
		u := etcdObject(t, "v1", want.Name, a.namespace, "{}")
		spec, _ := toMap(t, now)["spec"].(map[string]any)
		u.Object["spec"] = spec
		u.SetResourceVersion(now.ResourceVersion)
		return u
	}
	resize := func(u *unstructured.Unstructured, size int32) *unstructured.Unstructured {
		must(t, unstructured.SetNestedField(u.Object, int64(size), "spec", "size"))
		return u
	}
	ways := map[string]func(size int32) error{
		"replace": func(size int32) error { return api.Update(t.Context(), resize(plain(), size)) },
		"apply": func(size int32) error {
			u := resize(plain(), size)
			u.SetResourceVersion("")
			return applyAs(t, u)
		},
		"status": func(size int32) error {
			now, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, want.Name)
			must(t, err)
			kept := now.Status.V1Beta2
			now.Status = observedStatus()
			now.Status.V1Beta2 = kept
			must(t, api.Status().Update(t.Context(), now))
			return api.Update(t.Context(), resize(plain(), size))
		},
	}
	size := int32(1)
	for name, write := range ways {
		t.Run(name, func(t *testing.T) {
			size += 2
			must(t, write(size))
			back, err := get(t, &v1beta2.EtcdCluster{}, a.namespace, want.Name)
			must(t, err)
			want.Spec.Size = size
			sameSpec(t, "the spec", back.Spec, want.Spec)
		})
	}
}

// A write through v1beta2 that changes nothing is no write, except the first one: the API
// server records the version of each writer.
func TestEmptyLegacyWriteChangesNothing(t *testing.T) {
	a := newConverter(t, time.Now())
	want := a.makeModern(t)
	var versions []string
	for range 3 {
		now, err := get(t, &v1beta2.EtcdCluster{}, a.namespace, "c")
		must(t, err)
		must(t, api.Update(t.Context(), now))
		versions = append(versions, now.ResourceVersion)
	}
	if versions[0] != versions[1] || versions[1] != versions[2] {
		t.Errorf("it was written each time: %v", versions)
	}
	a.unharmed(t, want)
	if now, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, "c"); err != nil || now.Status.V1Beta2 != "" {
		t.Errorf("v1beta2 expressed nothing new, and v1 keeps %q, %v", now.Status.V1Beta2, err)
	}
}

func toMap(t *testing.T, obj client.Object) map[string]any {
	t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	must(t, err)
	return u
}
