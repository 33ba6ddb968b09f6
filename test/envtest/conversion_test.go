package envtest_test

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
	"github.com/governor-dev/governor/apps/etcd/legacy"
	"github.com/governor-dev/governor/kube/conversion"
)

const etcdClusters = "etcdclusters.etcd.database.coreos.com"

// conversions returns the conversions of cmd/governor.
func conversions() *conversion.Handler {
	h := conversion.New()
	conversion.Add(h, v1beta2.GroupVersion.WithKind("EtcdCluster"), etcdv1.GroupVersion, legacy.ToV1, legacy.RestoreV1)
	conversion.Add(h, etcdv1.GroupVersion.WithKind("EtcdCluster"), v1beta2.GroupVersion, legacy.FromV1, legacy.CarryV1)
	return h
}

// newConverter runs an operator with the conversion webhook until the test ends.
func newConverter(t *testing.T, now time.Time, edits ...func(*adviser)) *adviser {
	t.Helper()
	a := newAdviser(t, now, append(edits, func(a *adviser) {
		a.options.Definitions = []string{etcdClusters}
		a.define(t)
	})...)
	a.converts(t)
	return a
}

// define applies the CRD as kubectl does.
func (a *adviser) define(t *testing.T) {
	t.Helper()
	for _, u := range installed(t) {
		if u.GetName() == etcdClusters {
			callsTo(a.port, u)
			must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"), client.ForceOwnership))
		}
	}
}

func definitionOf(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	must(t, api.Get(t.Context(), client.ObjectKey{Name: etcdClusters}, d))
	return d
}

// injected waits until the CRD trusts the CA in the Secret.
func (a *adviser) injected(t *testing.T) {
	t.Helper()
	eventually(t, "the caBundle of the definition is that of the Secret", func() error {
		c := definitionOf(t).Spec.Conversion
		if c == nil || c.Webhook == nil || !bytes.Equal(c.Webhook.ClientConfig.CABundle, a.secret(t).Data["ca.crt"]) {
			return errNotYet
		}
		return nil
	})
}

// converts waits until the API server can convert a legacy object.
func (a *adviser) converts(t *testing.T) {
	t.Helper()
	a.injected(t)
	eventually(t, "a legacy object can be made", func() error {
		probe := etcdObject(t, "v1beta2", "probe", a.namespace, "{size: 1}")
		return api.Create(t.Context(), probe, client.DryRunAll)
	})
}

// fixture reads a legacy object.
func fixture(t *testing.T, path, namespace string) *v1beta2.EtcdCluster {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	c := &v1beta2.EtcdCluster{}
	must(t, yaml.UnmarshalStrict(raw, c))
	c.Namespace = namespace
	return c
}

func sameSpec(t *testing.T, reason string, got, want any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("%s: %s", reason, cmp.Diff(want, got))
	}
}

// The API server accepts a user's manifest unchanged, returns it unchanged, and keeps its
// meaning.
func TestLegacyManifestRoundTrips(t *testing.T) {
	a := newConverter(t, time.Now())
	sent := fixture(t, "../../apps/etcd/legacy/testdata/cluster.yaml", a.namespace)
	must(t, strict().Create(t.Context(), sent.DeepCopy()))
	back, err := get(t, &v1beta2.EtcdCluster{}, a.namespace, sent.Name)
	must(t, err)
	sameSpec(t, "it comes back as it was sent", back.Spec, sent.Spec)
	if len(back.Annotations) != 0 {
		t.Errorf("a plain object comes back with annotations: %v", back.Annotations)
	}
	meant, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, sent.Name)
	must(t, err)
	sameSpec(t, "it means", meant.Spec, etcdv1.EtcdClusterSpec{
		Rebalance: etcdv1.RebalanceManual,
		Size:      3, Version: "3.2.13", TLS: etcdv1.TLSSpec{Mode: etcdv1.TLSModeDisabled},
		Storage: etcdv1.StorageSpec{Medium: etcdv1.MediumEphemeral, Size: new(resource.MustParse("8Gi"))},
	})
}

func TestEveryLegacyFieldRoundTrips(t *testing.T) {
	a := newConverter(t, time.Now())
	sent := fixture(t, "testdata/etcdcluster-full.yaml", a.namespace)
	for _, part := range []any{sent.Spec, *sent.Spec.Pod, *sent.Spec.TLS.Static, *sent.Spec.TLS.Static.Member} {
		for v, i := reflect.ValueOf(part), 0; i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				t.Errorf("the fixture lacks %s of %T", v.Type().Field(i).Name, part)
			}
		}
	}
	must(t, strict().Create(t.Context(), sent.DeepCopy()))
	back, err := get(t, &v1beta2.EtcdCluster{}, a.namespace, sent.Name)
	must(t, err)
	sameSpec(t, "every field comes back", back.Spec, sent.Spec)
	sameSpec(t, "so do annotations", back.Annotations, sent.Annotations)
	meant, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, sent.Name)
	must(t, err)
	s := meant.Spec
	if s.Version != "3.5.21" || s.ClusterDomain != "cluster.local" || s.Storage.Size.String() != "1Gi" || s.TLS.Secrets.Client != "etcd-client-tls" {
		t.Errorf("it means %+v", s)
	}
	// A change through v1 appears in v1beta2, and no other field changes.
	meant.Spec.Size = 3
	must(t, api.Update(t.Context(), meant))
	back, err = get(t, &v1beta2.EtcdCluster{}, a.namespace, sent.Name)
	must(t, err)
	sent.Spec.Size = 3
	sameSpec(t, "only what was changed has changed", back.Spec, sent.Spec)
}

// kubectl applies the same file repeatedly.
func TestReapplyOfLegacyManifestChangesNothing(t *testing.T) {
	a := newConverter(t, time.Now())
	var versions []string
	for range 3 {
		u := etcdObject(t, "v1beta2", "c", a.namespace, "{size: 3, version: 3.2.13, pod: {labels: {a: b}}}")
		must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")))
		versions = append(versions, u.GetResourceVersion())
	}
	if versions[0] != versions[1] || versions[1] != versions[2] {
		t.Errorf("it was written each time: %v", versions)
	}
}

func TestV1IsReadableInTheLegacyAPI(t *testing.T) {
	a := newConverter(t, time.Now())
	must(t, strict().Create(t.Context(), etcdObject(t, "v1", "c", a.namespace, modern)))
	now, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, "c")
	must(t, err)
	now.Status = etcdv1.EtcdClusterStatus{
		Phase: etcdv1.PhaseDegraded, Replicas: 2, ReadyReplicas: 1, ServiceName: "c-client", Ready: "1/3", Leader: "c-0",
		Version:    etcdv1.VersionStatus{Current: "3.5.21", Target: "3.6.16"},
		Members:    []etcdv1.MemberStatus{{Name: "c-0", Health: "Healthy"}, {Name: "c-1", Health: "Unhealthy"}},
		Conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Repairing", Message: "m", LastTransitionTime: metav1.Unix(0, 0)}},
	}
	must(t, api.Status().Update(t.Context(), now))
	old, err := get(t, &v1beta2.EtcdCluster{}, a.namespace, "c")
	must(t, err)
	sameSpec(t, "the spec", old.Spec, v1beta2.ClusterSpec{Size: 3, Version: "3.6", Pod: &v1beta2.PodPolicy{
		PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("2Gi")}},
		},
	}})
	at := "1970-01-01T00:00:00Z"
	old.Status.V1 = ""
	sameSpec(t, "the status", old.Status, v1beta2.ClusterStatus{
		Phase: "Running", Size: 2, ServiceName: "c-client", ClientPort: 2379, CurrentVersion: "3.5.21", TargetVersion: "3.6.16",
		Members: v1beta2.MembersStatus{Ready: []string{"c-0"}, Unready: []string{"c-1"}},
		Conditions: []v1beta2.ClusterCondition{{Type: "Ready", Status: "False", Reason: "Repairing", Message: "m",
			LastUpdateTime: at, LastTransitionTime: at}},
	})
	for version, want := range map[string]string{
		"v1":      "Name=c Ready=1/3 Status=Repairing Version=3.5.21 Leader=c-0 Age=",
		"v1beta2": "Name=c Size=3 Version=3.5.21 Phase=Running Age=",
	} {
		if got := table(t, version, a.namespace); !strings.HasPrefix(got, want) {
			t.Errorf("kubectl get shows %s of %s, want %s", got, version, want)
		}
	}
}

// table returns the output of kubectl get for the first object.
func table(t *testing.T, version, namespace string) string {
	t.Helper()
	u := &unstructured.Unstructured{}
	fetchTable(t, "/apis/etcd.database.coreos.com/"+version+"/namespaces/"+namespace+"/etcdclusters", u)
	columns, _, _ := unstructured.NestedSlice(u.Object, "columnDefinitions")
	rows, _, _ := unstructured.NestedSlice(u.Object, "rows")
	if len(rows) == 0 {
		t.Fatalf("no rows: %v", u.Object)
	}
	var cells []string
	for i, cell := range rows[0].(map[string]any)["cells"].([]any) {
		if column := columns[i].(map[string]any); column["priority"].(int64) == 0 {
			cells = append(cells, fmt.Sprintf("%s=%v", column["name"], cell))
		}
	}
	return strings.Join(cells, " ")
}
