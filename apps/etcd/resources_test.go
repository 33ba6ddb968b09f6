package etcd_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

var update = flag.Bool("update", false, "write the golden files")

// rendering is one golden file: everything around one cluster and its first member.
type rendering struct {
	edit    func(*etcdv1.EtcdCluster)
	seen    etcd.World
	version string
}

func renderings() map[string]rendering {
	return map[string]rendering{
		"forming": {version: "3.6.16"},
		"joining": {version: "3.6.16", seen: serving(2).with("e-7", func(m *etcd.Member) { m.Role, m.ID = etcd.Learner, 7 }).World},
		"settled-3.4": {version: "3.4.23", seen: serving(1).World, edit: func(c *etcdv1.EtcdCluster) {
			c.Spec.Size, c.Spec.TLS.Mode, c.Spec.Storage.Medium = 1, etcdv1.TLSModeDisabled, etcdv1.MediumMemory
		}},
		"legacy-3.2": {version: "3.2.13", edit: func(c *etcdv1.EtcdCluster) {
			c.Spec.TLS.Mode, c.Spec.Storage.Medium = etcdv1.TLSModeDisabled, etcdv1.MediumEphemeral
		}},
		"own-secrets": {version: "3.5.35", seen: etcd.World{LegacyKeys: true}, edit: func(c *etcdv1.EtcdCluster) {
			c.Spec.TLS = etcdv1.TLSSpec{Mode: etcdv1.TLSModeSecrets, Secrets: &etcdv1.TLSSecrets{Peer: "p", Server: "s", Client: "c"}}
		}},
		"full": {version: "3.7.3", edit: full},
	}
}

func full(c *etcdv1.EtcdCluster) {
	quota, size := resource.MustParse("4Gi"), resource.MustParse("20Gi")
	c.Spec.Size, c.Spec.Repository, c.Spec.ClusterDomain = 5, "registry.example.com/etcd", "cluster.example"
	c.Spec.Storage = etcdv1.StorageSpec{Size: &size, StorageClassName: new("fast"), Retention: etcdv1.RetentionRetain}
	c.Spec.Options = etcdv1.OptionsSpec{
		Quota: &quota, CompactionMode: etcdv1.CompactionModePeriodic, CompactionRetention: "1h", SnapshotCount: 5000,
	}
	c.Spec.NetworkPolicy = etcdv1.NetworkPolicySpec{Enabled: true, Clients: []networkingv1.NetworkPolicyPeer{
		{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}},
	}}
	c.Spec.Pod = etcdv1.PodSettings{
		Labels:            map[string]string{"team": "a", "app.kubernetes.io/instance": "not-yours"},
		Annotations:       map[string]string{"example.com/a": "b"},
		NodeSelector:      map[string]string{"disk": "fast"},
		Affinity:          &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
		Tolerations:       []corev1.Toleration{{Key: "etcd", Operator: corev1.TolerationOpExists}},
		PriorityClassName: "high", ServiceAccountName: "etcd",
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: "rack"}},
		Resources:                 corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}},
		Env:                       []corev1.EnvVar{{Name: "ETCD_HEARTBEAT_INTERVAL", Value: "200"}},
		Args:                      []string{"--election-timeout=2000"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
		TerminationGracePeriodSeconds: new(int64(60)),
	}
}

// A change of the pod template in these files reaches clusters at their next
// restart; one that cannot wait needs a new layout in desired.go.
func TestResources(t *testing.T) {
	for name, r := range renderings() {
		t.Run(name, func(t *testing.T) {
			want := wanted(3)
			want.Spec.TLS.Mode = etcdv1.TLSModeManaged
			if r.edit != nil {
				r.edit(want)
			}
			golden(t, name, render(t, want, r))
		})
	}
}

func render(t *testing.T, want *etcdv1.EtcdCluster, r rendering) string {
	t.Helper()
	objects, err := etcd.Planner{}.Resources(want, r.seen)
	if err != nil {
		t.Fatal(err)
	}
	step := lifecycle.Step{Name: etcd.StartMember, Target: "e-0", Args: map[string]string{
		etcd.ArgVersion: r.version, etcd.ArgRevision: etcd.Revision(want), etcd.ArgExposed: string(etcd.Exposed),
	}}
	set, err := etcd.StatefulSet(want, r.seen, step)
	if err != nil {
		t.Fatal(err)
	}
	if claim := etcd.Claim(want, step); claim != nil {
		objects = append(objects, claim)
	}
	docs := make([]string, 0, len(objects)+1)
	for _, obj := range append(objects, lifecycle.Object(set)) {
		raw, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, strings.TrimPrefix(typeName(obj), "*")+"\n"+string(raw))
	}
	return "# " + strings.Join(docs, "---\n# ")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-update writes it): %s", path, diff)
	}
}

func TestRevisionCoversUserSettings(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*etcdv1.EtcdCluster)
		same   bool
	}{
		"Size":      {"members are added and removed without a restart of the others", func(c *etcdv1.EtcdCluster) { c.Spec.Size = 7 }, true},
		"Version":   {"versions are compared separately, one release at a time", func(c *etcdv1.EtcdCluster) { c.Spec.Version = "3.7" }, true},
		"Paused":    {"pausing changes nothing", func(c *etcdv1.EtcdCluster) { c.Spec.Paused = true }, true},
		"Policy":    {"nor does a NetworkPolicy", func(c *etcdv1.EtcdCluster) { c.Spec.NetworkPolicy.Enabled = true }, true},
		"Volume":    {"volumes grow under a running pod", func(c *etcdv1.EtcdCluster) { q := resource.MustParse("9Gi"); c.Spec.Storage.Size = &q }, true},
		"Resources": {"the pods are other ones", func(c *etcdv1.EtcdCluster) { c.Spec.Pod.PriorityClassName = "x" }, false},
		"Options":   {"etcd reads its flags when it starts", func(c *etcdv1.EtcdCluster) { c.Spec.Options.SnapshotCount = 1 }, false},
		"Image":     {"another image is another program", func(c *etcdv1.EtcdCluster) { c.Spec.Image = "a/b" }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := wanted(3), wanted(3)
			c.edit(b)
			if same := etcd.Revision(a) == etcd.Revision(b); same != c.same {
				t.Errorf("%s: same = %v", c.reason, same)
			}
		})
	}
}

// A cluster that is deleted and recreated under its name shares nothing with the old one.
func TestRecreatedClusterSharesNothing(t *testing.T) {
	a, b := wanted(3), wanted(3)
	b.UID = "another"
	b.Status.Bootstrap = nil
	etcd.Planner{}.Status(b, etcd.World{})
	if etcd.ClaimName(a, "e-0") == etcd.ClaimName(b, "e-0") {
		t.Error("the new cluster would mount the old one's volume")
	}
	if a.Status.Bootstrap.Token == b.Status.Bootstrap.Token {
		t.Error("members of the two would talk to each other")
	}
}

// When status.bootstrap was deleted, no member may bootstrap a cluster: the first one exists, and a
// joining member would start a second one.
func TestLostStatusBootstrapsNoCluster(t *testing.T) {
	want := wanted(3)
	want.Status.Bootstrap, want.Status.Members = nil, nil
	seen := serving(3).with("e-2", func(m *etcd.Member) { *m = etcd.Member{Name: "e-2", ID: m.ID, Role: etcd.Learner, PeerURL: m.PeerURL} })
	etcd.Planner{}.Status(want, seen.World)
	resources, err := etcd.Planner{}.Resources(want, seen.World)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range resources {
		if c, ok := obj.(*corev1.ConfigMap); ok && c.Name == etcd.BootstrapConfigName("e-2") && etcd.BootstrapModeOf(c) != etcd.BootstrapJoin {
			t.Errorf("the bootstrap ConfigMap of e-2 is %v", c.Data)
		}
	}
	if m := want.Status.Bootstrap; m.InitialMembers == nil || len(m.InitialMembers) > 0 || !m.Formed || m.NextMember != 3 {
		t.Errorf("status.bootstrap is %+v", m)
	}
}

// The bootstrap ConfigMaps of a forming cluster show its initial members, and those of every
// other cluster show none.
func TestInitialMembersOfBootstrapConfigs(t *testing.T) {
	want := wanted(3)
	want.Status.Bootstrap = nil
	etcd.Planner{}.Status(want, etcd.World{})
	resources, err := etcd.Planner{}.Resources(want, etcd.World{})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		edit   func(map[string]string)
		want   []string
	}{
		"Forming":   {"all of them list the same members", func(map[string]string) {}, []string{"e-0", "e-1", "e-2"}},
		"None":      {"nothing was provided yet", func(all map[string]string) { clear(all) }, nil},
		"Disabled":  {"a member has served", func(all map[string]string) { all["e-1"] = "" }, nil},
		"Missing":   {"the ConfigMap of one is gone", func(all map[string]string) { delete(all, "e-2") }, nil},
		"Another":   {"another member exists", func(all map[string]string) { all["e-3"] = "" }, nil},
		"Different": {"one lists other members", func(all map[string]string) { all["e-1"] = "e-1=http://a,e-2=http://b,e-3=http://c" }, nil},
	}
	for name, c := range cases {
		clusters := map[string]string{}
		for _, obj := range resources {
			if m, ok := obj.(*corev1.ConfigMap); ok {
				clusters[m.Labels[etcd.LabelMember]] = etcd.InitialClusterOf(m)
			}
		}
		c.edit(clusters)
		if got := etcd.InitialMembersOf(clusters); !slices.Equal(got, c.want) {
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		}
	}
}
