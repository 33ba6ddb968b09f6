package driver

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
)

// A pod of an earlier cluster of the same name is never taken for a member of this one.
func TestOwned(t *testing.T) {
	controller := func(kind, name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: uid, Controller: new(true)}}
	}
	set := func(uid, cluster types.UID) appsv1.StatefulSet {
		return appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "my-etcd-0", UID: uid, OwnerReferences: controller("EtcdCluster", "my-etcd", cluster)}}
	}
	going := set("going", "uid")
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	sets := []appsv1.StatefulSet{set("ours", "uid"), going, set("theirs", "earlier")}
	want := plain("")
	mine := etcd.ClaimName(want, "my-etcd-0")
	cases := map[string]struct {
		reason, name, clusterID string
		owners                  []metav1.OwnerReference
		volume                  string
		want                    bool
	}{
		"Ours":        {"its StatefulSet is ours", "my-etcd-0-0", "", controller("StatefulSet", "my-etcd-0", "ours"), mine, true},
		"Going":       {"its StatefulSet is being deleted, and it still runs", "my-etcd-0-0", "", controller("StatefulSet", "my-etcd-0", "going"), mine, true},
		"Theirs":      {"its StatefulSet is of an earlier cluster", "my-etcd-0-0", "c1", controller("StatefulSet", "my-etcd-0", "theirs"), mine, false},
		"Gone":        {"its StatefulSet is deleted, and so will it be", "my-etcd-0-0", "c1", controller("StatefulSet", "my-etcd-0", "gone"), mine, false},
		"Orphan":      {"its StatefulSet orphaned it, and its answer proves its identity", "my-etcd-0-0", "c1", nil, mine, true},
		"EarlyOrphan": {"nothing proves its identity yet", "my-etcd-0-0", "", nil, mine, false},
		"OtherName":   {"a copy of a member's pod", "another-0", "c1", nil, mine, false},
		"Earlier":     {"it runs on the volume of an earlier cluster", "my-etcd-0-0", "c1", nil, "my-etcd-0-abcdefgh", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want.Status.ClusterID = c.clusterID
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.name, OwnerReferences: c.owners}}
			pod.Spec.Volumes = []corev1.Volume{{Name: etcd.DataVolume, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.volume},
			}}}
			if got := owned(want, sets, nil)(pod); got != c.want {
				t.Errorf("%s: got %v", c.reason, got)
			}
		})
	}
}

// An object is a member's by its name and its owner. Labels can be copied and edited: a
// volume that was copied with all its labels is never taken for the member's own.
func TestMembersAreKnownByNames(t *testing.T) {
	want := plain("")
	meta := func(name, label string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{
			lifecycle.LabelApp: etcd.Name, lifecycle.LabelInstance: want.Name, etcd.LabelMember: label, etcd.LabelCluster: string(want.UID),
		}}
	}
	controlled := func(m metav1.ObjectMeta) metav1.ObjectMeta {
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(want, kind)}
		return m
	}
	mine, copied, relabelled := etcd.ClaimName(want, "my-etcd-0"), etcd.ClaimName(want, "my-etcd-0")+"-copy", etcd.ClaimName(want, "my-etcd-1")
	set := &appsv1.StatefulSet{ObjectMeta: controlled(meta("my-etcd-1", "my-etcd-0"))}
	set.UID = "set"
	pod := &corev1.Pod{ObjectMeta: meta("my-etcd-1-0", "my-etcd-0")}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	api := fake.NewClientBuilder().WithObjects(
		&corev1.PersistentVolumeClaim{ObjectMeta: meta(mine, "my-etcd-0")}, &corev1.PersistentVolumeClaim{ObjectMeta: meta(copied, "my-etcd-0")},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta(relabelled, "my-etcd-0")},
		&corev1.ConfigMap{ObjectMeta: controlled(meta("my-etcd-1-bootstrap", "my-etcd-0"))}, set, pod,
	).Build()
	p, err := New(kube.Access{Client: api, Live: api, Now: time.Now}).(*Driver).gather(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{
		"claims": slices.Sorted(maps.Keys(p.claims)), "sets": slices.Sorted(maps.Keys(p.sets)),
		"pods": slices.Sorted(maps.Keys(p.pods)), "bootstrapConfigs": slices.Sorted(maps.Keys(p.bootstrapConfigs)),
	}
	only := []string{"my-etcd-1"}
	if diff := cmp.Diff(map[string][]string{"claims": {"my-etcd-0", "my-etcd-1"}, "sets": only, "pods": only, "bootstrapConfigs": only}, got); diff != "" {
		t.Error(diff)
	}
	if name := p.claims["my-etcd-0"].Name; name != mine {
		t.Errorf("the volume of my-etcd-0 is %s", name)
	}
}

// The initial members of a forming cluster are known from the ConfigMaps that were provided.
func TestInitialMembersAreObserved(t *testing.T) {
	want := plain("")
	want.Spec.Size = 3
	etcd.Planner{}.Status(want, etcd.World{})
	resources, err := etcd.Planner{}.Resources(want, etcd.World{})
	if err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().Build()
	for _, obj := range resources {
		if c, ok := obj.(*corev1.ConfigMap); ok {
			c.Namespace, c.Labels[lifecycle.LabelApp] = want.Namespace, etcd.Name
			c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(want, kind)}
			if err := api.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	v, err := New(kube.Access{Client: api, Live: api, Now: time.Now}).(*Driver).observe(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Status.Bootstrap.InitialMembers, v.world.Initial); diff != "" || len(v.world.Initial) == 0 {
		t.Errorf("initial members %v: %s", v.world.Initial, diff)
	}
}

// Claims that an earlier cluster of the name left are named, not used; Kubernetes is about to delete the others.
func TestOldVolumes(t *testing.T) {
	want := plain("")
	claim := func(name, cluster string, edit func(*corev1.PersistentVolumeClaim)) corev1.PersistentVolumeClaim {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{etcd.LabelCluster: cluster}}}
		edit(&c)
		return c
	}
	none := func(*corev1.PersistentVolumeClaim) {}
	got := oldVolumes(want, []corev1.PersistentVolumeClaim{
		claim("my-etcd-1-old", "earlier", none),
		claim("my-etcd-0-old", "earlier", none),
		claim("my-etcd-0-own", string(want.UID), none),
		claim(etcd.ClaimName(want, "my-etcd-0"), "relabeled", none),
		claim("my-etcd-0-used", "earlier", none),
		claim("my-etcd-0-any", "", none),
		claim("my-etcd-0-owned", "earlier", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = []metav1.OwnerReference{{UID: "earlier"}} }),
		claim("my-etcd-0-gone", "earlier", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: noon} }),
	}, []corev1.Pod{{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "my-etcd-0-used"},
	}}}}}})
	if diff := cmp.Diff([]string{"my-etcd-0-old", "my-etcd-1-old"}, got); diff != "" {
		t.Error(diff)
	}
}

// While an earlier cluster of the name runs, also one that a cache shows half orphaned,
// nothing is made.
func TestOrphansOfAnEarlierCluster(t *testing.T) {
	want := plain("")
	old := plain("")
	old.UID = "earlier"
	owned := []metav1.OwnerReference{*metav1.NewControllerRef(old, kind)}
	set := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "my-etcd-0", UID: "set"}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "my-etcd-0-0"}}
	ofOld, ofSet, going := set, pod, pod
	ofOld.OwnerReferences = owned
	ofSet.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	trial := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "my-etcd-trial", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(want, kind)}}}
	cases := map[string]struct {
		reason  string
		sets    []appsv1.StatefulSet
		pods    []corev1.Pod
		orphans []string
		earlier bool
	}{
		"Nothing":  {"the name is free", nil, nil, nil, false},
		"Orphaned": {"all lost their owners", []appsv1.StatefulSet{set}, []corev1.Pod{ofSet}, []string{"StatefulSet my-etcd-0"}, true},
		"Pods":     {"the StatefulSet was deleted with --cascade=orphan, too", nil, []corev1.Pod{pod}, []string{"Pod my-etcd-0-0"}, false},
		"Lagging":  {"the cache has the pod as it was before", nil, []corev1.Pod{ofSet}, nil, true},
		"Deleted":  {"the earlier cluster was deleted a moment ago", []appsv1.StatefulSet{ofOld}, nil, nil, true},
		"Trial":    {"the trial pod of this cluster is not of an earlier one", nil, []corev1.Pod{trial}, nil, false},
		"Going":    {"a pod that ends takes no name", nil, []corev1.Pod{going}, nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all, earlier := orphans(want, parts{}, c.sets, c.pods)
			if diff := cmp.Diff(c.orphans, all); diff != "" || earlier != c.earlier {
				t.Errorf("%s: earlier %v, orphans %s", c.reason, earlier, diff)
			}
		})
	}
}
