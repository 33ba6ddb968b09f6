package legacy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
	"github.com/governor-dev/governor/apps/etcd/legacy"
)

// filler fills every field. What JSON cannot carry exactly is given a canonical
// form: quantities, times, and collections that are never empty but not nil.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(1, 3).MaxDepth(9).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(resource.NewQuantity(int64(c.Int31()), resource.BinarySI).String())
			_ = q.String()
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(int64(c.Int31()), 0) },
		func(m *metav1.TypeMeta, _ randfill.Continue) { m.Kind = "EtcdCluster" },
		func(m *metav1.ObjectMeta, _ randfill.Continue) {
			m.Name, m.Annotations = "e", map[string]string{"a": "b"}
		},
		func(s *metav1.FieldsV1, _ randfill.Continue) { *s = metav1.FieldsV1{} },
	)
}

const seeds = 2000

func TestLegacyToV1AndBackLosesNothing(t *testing.T) {
	for seed := range int64(seeds) {
		in := &v1beta2.EtcdCluster{}
		filler(seed).Fill(in)
		in.APIVersion, in.Spec.Size = v1beta2.GroupVersion.String(), int32(seed%9)+1
		mid, err := legacy.ToV1(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := legacy.FromV1(stored(t, mid))
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(in, out) {
			t.Fatalf("seed %d: %s", seed, cmp.Diff(in, out))
		}
	}
}

func TestV1ToLegacyAndBackLosesNothing(t *testing.T) {
	for seed := range int64(seeds) {
		in := &etcdv1.EtcdCluster{}
		filler(seed).Fill(in)
		in.APIVersion, in.Spec.Size = etcdv1.GroupVersion.String(), int32(seed%9)+1
		mid, err := legacy.FromV1(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := legacy.ToV1(stored(t, mid))
		if err != nil {
			t.Fatal(err)
		}
		delete(out.Annotations, legacy.AnnotationV1Beta2)
		if !equality.Semantic.DeepEqual(in, out) {
			t.Fatalf("seed %d: %s", seed, cmp.Diff(in, out))
		}
	}
}

// A change in one version is seen in the other, and nothing else changes.
func TestAChangeInOneVersionIsSeenInTheOther(t *testing.T) {
	for seed := range int64(seeds / 10) {
		in := &v1beta2.EtcdCluster{}
		filler(seed).Fill(in)
		in.APIVersion = v1beta2.GroupVersion.String()
		mid, err := legacy.ToV1(in)
		if err != nil {
			t.Fatal(err)
		}
		mid = stored(t, mid)
		mid.Spec.Size, mid.Spec.Pod.Labels = 7, map[string]string{"x": "y"}
		out, err := legacy.FromV1(mid)
		if err != nil {
			t.Fatal(err)
		}
		delete(out.Annotations, legacy.AnnotationV1)
		in.Spec.Size = 7
		if in.Spec.Pod == nil {
			in.Spec.Pod = &v1beta2.PodPolicy{}
		}
		in.Spec.Pod.Labels = map[string]string{"x": "y"}
		if !equality.Semantic.DeepEqual(in, out) {
			t.Fatalf("seed %d: %s", seed, cmp.Diff(in, out))
		}
	}
}

// stored is the object as it comes back from the API server.
func stored[T any](t *testing.T, obj *T) *T {
	t.Helper()
	raw, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := yaml.UnmarshalStrict(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The manifest that users have means: three members on the pods' own storage,
// without encryption.
func TestTheManifestThatUsersHave(t *testing.T) {
	raw, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	in := &v1beta2.EtcdCluster{}
	if err := yaml.UnmarshalStrict(raw, in); err != nil {
		t.Fatal(err)
	}
	got, err := legacy.ToV1(in)
	if err != nil {
		t.Fatal(err)
	}
	want := etcdv1.EtcdClusterSpec{
		Size: 3, Version: "3.2.13", TLS: etcdv1.TLSSpec{Mode: etcdv1.Disabled},
		Storage: etcdv1.StorageSpec{Medium: etcdv1.Ephemeral, Retention: etcdv1.Delete, Size: new(resource.MustParse("8Gi"))},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" || got.APIVersion != "etcd.database.coreos.com/v1" {
		t.Errorf("%s %s", got.APIVersion, diff)
	}
}

func TestFromLegacy(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*v1beta2.ClusterSpec)
		check  func(etcdv1.EtcdClusterSpec) bool
	}{
		"NoVersion": {"the legacy default is kept: data is never moved to another release by a conversion",
			func(s *v1beta2.ClusterSpec) { s.Version = "" }, func(s etcdv1.EtcdClusterSpec) bool { return s.Version == "3.2.13" }},
		"LeadingV": {"a leading v was allowed", func(s *v1beta2.ClusterSpec) { s.Version = "v3.5.21" },
			func(s etcdv1.EtcdClusterSpec) bool { return s.Version == "3.5.21" }},
		"Domain": {"a leading dot was usual", func(s *v1beta2.ClusterSpec) { s.Pod = &v1beta2.PodPolicy{ClusterDomain: ".cluster.local"} },
			func(s etcdv1.EtcdClusterSpec) bool { return s.ClusterDomain == "cluster.local" }},
		"Apart": {"antiAffinity demanded a node for each member", func(s *v1beta2.ClusterSpec) { s.Pod = &v1beta2.PodPolicy{AntiAffinity: true} },
			func(s etcdv1.EtcdClusterSpec) bool {
				return len(s.Pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 1
			}},
		"Claim": {"a claim means volumes", func(s *v1beta2.ClusterSpec) {
			s.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
		}, func(s etcdv1.EtcdClusterSpec) bool { return s.Storage.Medium == etcdv1.Persistent }},
		"TLS": {"static secrets are the user's own", func(s *v1beta2.ClusterSpec) {
			s.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{Member: &v1beta2.MemberSecret{PeerSecret: "p"}}}
		}, func(s etcdv1.EtcdClusterSpec) bool { return s.TLS.Mode == etcdv1.Secrets && s.TLS.Secrets.Peer == "p" }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := &v1beta2.EtcdCluster{}
			c.edit(&in.Spec)
			got, err := legacy.ToV1(in)
			if err != nil || !c.check(got.Spec) {
				t.Errorf("%s: %+v %v", c.reason, got.Spec, err)
			}
		})
	}
}

// A manifest that was taken from a running cluster and is applied again after its
// deletion carries, in the annotation, the memory of the former life. With it the
// new cluster would look for members that are gone.
func TestAClusterThatIsMadeAnewHasNoPast(t *testing.T) {
	in := &etcdv1.EtcdCluster{}
	in.Spec.Size = 5
	in.Spec.Options.SnapshotCount = 7
	in.Status.Memory = &etcdv1.Memories{Formed: true}
	exported, err := legacy.FromV1(in)
	if err != nil {
		t.Fatal(err)
	}
	again := exported.DeepCopy()
	again.Status = v1beta2.ClusterStatus{} // as the API server does at creation
	got, err := legacy.ToV1(again)
	if err != nil || got.Status.Memory != nil || got.Spec.Options.SnapshotCount != 7 {
		t.Errorf("made anew: %+v %v", got, err)
	}
	if got, err = legacy.ToV1(exported); err != nil || got.Status.Memory == nil {
		t.Errorf("an update must not forget: %+v %v", got.Status, err)
	}
}

func TestUnreadableAnnotations(t *testing.T) {
	garbage := func(key string) metav1.ObjectMeta { return metav1.ObjectMeta{Annotations: map[string]string{key: "{"}} }
	in := &etcdv1.EtcdCluster{ObjectMeta: garbage(legacy.AnnotationV1Beta2), Spec: etcdv1.EtcdClusterSpec{Size: 5}}
	out, err := legacy.FromV1(in)
	if err != nil || out.Spec.Size != 5 || out.Annotations[legacy.AnnotationV1Beta2] != "" {
		t.Errorf("it would break the list of all objects: %+v %v", out, err)
	}
	_, err = legacy.ToV1(&v1beta2.EtcdCluster{ObjectMeta: garbage(legacy.AnnotationV1)})
	if err == nil || !strings.Contains(err.Error(), "metadata.annotations["+legacy.AnnotationV1+"] is not readable") {
		t.Errorf("fields of v1 would be lost, the user must be told: %v", err)
	}
}
