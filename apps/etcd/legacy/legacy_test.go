package legacy_test

import (
	"bytes"
	"encoding/json"
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

const seeds = 300

// filled is a legacy object with random fields.
func filled(seed int64) *v1beta2.EtcdCluster {
	obj := &v1beta2.EtcdCluster{}
	filler(seed).Fill(obj)
	obj.APIVersion, obj.Spec.Size, obj.Status.V1 = v1beta2.GroupVersion.String(), int32(seed%9)+1, ""
	return obj
}

// modern is a v1 object with random fields that was last written in v1beta2 with
// other random fields, or never.
func modern(t *testing.T, seed int64) *etcdv1.EtcdCluster {
	t.Helper()
	obj := &etcdv1.EtcdCluster{}
	filler(seed).Fill(obj)
	obj.APIVersion, obj.Spec.Size, obj.Status.V1Beta2 = etcdv1.GroupVersion.String(), int32(seed%9)+1, ""
	if obj.Spec.Image != "" {
		obj.Spec.Repository = "" // they exclude each other
	}
	if seed%2 == 0 {
		said := filled(seed + 1)
		raw, err := json.Marshal(map[string]any{"spec": said.Spec, "status": said.Status})
		if err != nil {
			t.Fatal(err)
		}
		obj.Status.V1Beta2 = string(raw)
	}
	return obj
}

// hop converts as the API server does: what is converted is stored or sent.
func hop[In, Out any](t *testing.T, convert func(*In) (*Out, error), in *In) *Out {
	t.Helper()
	out, err := convert(in)
	if err != nil {
		t.Fatal(err)
	}
	return stored(t, out)
}

func differs(t *testing.T, seed int64, why string, want, got any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		t.Fatalf("seed %d: %s: %s", seed, why, cmp.Diff(want, got))
	}
}

// nothingIsLost converts both ways and back, and writes through the older version.
func nothingIsLost(t *testing.T, seed int64) {
	t.Helper()
	old := filled(seed)
	back := hop(t, legacy.FromV1, hop(t, legacy.ToV1, old))
	back.Status.V1 = ""
	differs(t, seed, "v1beta2 to v1 and back", old, back)

	now := modern(t, seed)
	again := hop(t, legacy.ToV1, hop(t, legacy.FromV1, now))
	differs(t, seed, "v1 to v1beta2 and back", forget(now), forget(again))

	update := hop(t, legacy.FromV1, now)
	update.Annotations = map[string]string{"etcd.database.coreos.com/v1": `{"spec":{"tls":{"mode":"Disabled"}}}`}
	update.Spec = expressible(now, filled(seed+2).Spec)
	after := hop(t, legacy.ToV1, update)
	differs(t, seed, "a PUT in v1beta2", inexpressible(now), inexpressible(after))
}

// forget leaves out what v1 keeps of v1beta2.
func forget(c *etcdv1.EtcdCluster) *etcdv1.EtcdCluster {
	c = c.DeepCopy()
	c.Status.V1Beta2 = ""
	return c
}

// expressible is the spec without the fields that the schema of v1beta2 makes immutable.
func expressible(now *etcdv1.EtcdCluster, wish v1beta2.ClusterSpec) v1beta2.ClusterSpec {
	shown, _ := legacy.FromV1(now)
	wish.TLS = shown.Spec.TLS
	if wish.Pod == nil {
		wish.Pod = &v1beta2.PodPolicy{}
	}
	wish.Pod.PersistentVolumeClaimSpec = nil
	if shown.Spec.Pod != nil && shown.Spec.Pod.PersistentVolumeClaimSpec != nil {
		wish.Pod.PersistentVolumeClaimSpec = &corev1.PersistentVolumeClaimSpec{StorageClassName: now.Spec.Storage.StorageClassName}
	}
	if now.Spec.Image != "" {
		wish.Repository = ""
	}
	return wish
}

// inexpressible is what no write in v1beta2 may change.
func inexpressible(c *etcdv1.EtcdCluster) *etcdv1.EtcdCluster {
	c = forget(c)
	s := &c.Spec
	c.Annotations = nil
	s.Size, s.Repository, s.Version, s.Paused, s.ClusterDomain = 0, "", "", false, ""
	s.Pod.Labels, s.Pod.Annotations, s.Pod.NodeSelector, s.Pod.Affinity, s.Pod.Tolerations = nil, nil, nil, nil, nil
	s.Pod.Resources, s.Pod.Env, s.Pod.SecurityContext = corev1.ResourceRequirements{}, nil, nil
	return c
}

func TestNothingIsLost(t *testing.T) {
	for seed := range int64(seeds) {
		nothingIsLost(t, seed)
	}
}

func FuzzNothingIsLost(f *testing.F) {
	for _, seed := range []int64{0, 1, 42, 1 << 40} {
		f.Add(seed)
	}
	f.Fuzz(nothingIsLost)
}

// A field that is kept as an annotation by a client means nothing.
func TestAnnotationsAreIgnored(t *testing.T) {
	in := filled(1)
	plain := hop(t, legacy.ToV1, in)
	in.Annotations["etcd.database.coreos.com/v1"] = `{"spec":{"size":99},"status":{"bootstrap":{"token":"t"}}}`
	got := hop(t, legacy.ToV1, in)
	differs(t, 1, "the spec", plain.Spec, got.Spec)
	differs(t, 1, "the status", plain.Status, got.Status)
}

// A change in one version is seen in the other, and nothing else changes.
func TestChangesAreVisibleInBothVersions(t *testing.T) {
	for seed := range int64(seeds / 10) {
		in := filled(seed)
		mid := hop(t, legacy.ToV1, in)
		mid.Spec.Size, mid.Spec.Pod.Labels = 7, map[string]string{"x": "y"}
		out := hop(t, legacy.FromV1, mid)
		out.Status.V1 = ""
		in.Spec.Size = 7
		if in.Spec.Pod == nil {
			in.Spec.Pod = &v1beta2.PodPolicy{}
		}
		in.Spec.Pod.Labels = map[string]string{"x": "y"}
		differs(t, seed, "a change in v1", in, out)
	}
}

// stored is the object as it comes back from the API server.
func stored[T any](t *testing.T, obj *T) *T {
	t.Helper()
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The manifest that users have means: three members on the pods' own storage,
// without encryption.
func TestLegacyManifest(t *testing.T) {
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
		Size: 3, Version: "3.2.13", TLS: etcdv1.TLSSpec{Mode: etcdv1.TLSModeDisabled},
		Storage: etcdv1.StorageSpec{Medium: etcdv1.MediumEphemeral, Size: new(resource.MustParse("8Gi"))}, Rebalance: etcdv1.RebalanceManual,
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
		}, func(s etcdv1.EtcdClusterSpec) bool { return s.Storage.Medium == etcdv1.MediumPersistent }},
		"TLS": {"static secrets are the user's own", func(s *v1beta2.ClusterSpec) {
			s.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{Member: &v1beta2.MemberSecret{PeerSecret: "p"}}}
		}, func(s etcdv1.EtcdClusterSpec) bool {
			return s.TLS.Mode == etcdv1.TLSModeSecrets && s.TLS.Secrets.Peer == "p"
		}},
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

// write is a legacy object of a cluster in v1, with an edit.
func write(t *testing.T, spec etcdv1.EtcdClusterSpec, edit func(*v1beta2.ClusterSpec)) (*etcdv1.EtcdCluster, error) {
	t.Helper()
	obj := hop(t, legacy.FromV1, &etcdv1.EtcdCluster{Spec: spec, Status: etcdv1.EtcdClusterStatus{Replicas: 3}})
	edit(&obj.Spec)
	return legacy.ToV1(obj)
}

// A manifest without the fields that have a default leaves the release and the volumes
// of a cluster as they are.
func TestOmittedDefaultChangesNothing(t *testing.T) {
	spec := etcdv1.EtcdClusterSpec{Size: 3, Version: "3.6.16", TLS: etcdv1.TLSSpec{Mode: etcdv1.TLSModeManaged},
		Storage: etcdv1.StorageSpec{Medium: etcdv1.MediumPersistent, Size: new(resource.MustParse("20Gi"))}}
	got, err := write(t, spec, func(s *v1beta2.ClusterSpec) {
		*s = v1beta2.ClusterSpec{Size: 5, Pod: &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	spec.Size = 5
	differs(t, 0, "only the size", spec, got.Spec)
	shown := hop(t, legacy.FromV1, stored(t, got))
	if size := shown.Spec.Pod.PersistentVolumeClaimSpec.Resources.Requests["storage"]; shown.Spec.Version != "3.6.16" || size.String() != "20Gi" {
		t.Errorf("v1beta2 shows version %q and size %s", shown.Spec.Version, size.String())
	}
}

// What the schema of v1beta2 cannot see is refused by the conversion.
func TestChangesForbiddenInV1AreRefused(t *testing.T) {
	managed := etcdv1.EtcdClusterSpec{TLS: etcdv1.TLSSpec{Mode: etcdv1.TLSModeManaged}, Storage: etcdv1.StorageSpec{Medium: etcdv1.MediumMemory}}
	image := managed
	image.Image, image.Version = "etcd:mine", "3.6.16"
	cases := map[string]struct {
		spec etcdv1.EtcdClusterSpec
		edit func(*v1beta2.ClusterSpec)
		want string
	}{
		"TLS": {managed, func(s *v1beta2.ClusterSpec) {
			s.TLS = &v1beta2.TLSPolicy{Static: &v1beta2.StaticTLS{Member: &v1beta2.MemberSecret{PeerSecret: "p"}}}
		}, "spec.tls.mode is Managed and cannot be changed to Secrets"},
		"Medium": {managed, func(s *v1beta2.ClusterSpec) {
			s.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
		}, "spec.storage.medium is Memory and cannot be changed to Persistent"},
		"Image": {image, func(s *v1beta2.ClusterSpec) { s.Repository = "example.com/etcd" }, "spec.repository cannot be set"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := write(t, c.spec, c.edit); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestUnreadableStatus(t *testing.T) {
	in := &etcdv1.EtcdCluster{Spec: etcdv1.EtcdClusterSpec{Size: 5}, Status: etcdv1.EtcdClusterStatus{V1Beta2: "{"}}
	if out, err := legacy.FromV1(in); err != nil || out.Spec.Size != 5 {
		t.Errorf("it would break the list of all objects: %+v %v", out, err)
	}
	_, err := legacy.ToV1(&v1beta2.EtcdCluster{Status: v1beta2.ClusterStatus{V1: "{"}})
	if err == nil || !strings.Contains(err.Error(), "status.v1 is not readable") {
		t.Errorf("fields of v1 would be lost: %v", err)
	}
}
