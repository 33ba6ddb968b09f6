package driver

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

func mounted(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{ContainerID: "containerd://1"}}}}
}

// TestEarlierClaim: a claim that a user created again under a pod is not the one that the pod has mounted.
func TestEarlierClaim(t *testing.T) {
	starting, ended := mounted("1"), mounted("1")
	starting.Status.ContainerStatuses[0].ContainerID, ended.Status.Phase = "", corev1.PodFailed
	claim := func(uid types.UID) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}
	}
	unbound := claim("b")
	unbound.Spec.VolumeName = ""
	scheduled := mounted("2")
	scheduled.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1000, 0)}}
	created := func(at int64) *corev1.PersistentVolumeClaim {
		c := claim("b")
		c.CreationTimestamp = metav1.Unix(at, 0)
		return c
	}
	cases := map[string]struct {
		reason string
		pod    *corev1.Pod
		claim  *corev1.PersistentVolumeClaim
		want   bool
	}{
		"Same":      {"its own claim", mounted("1"), claim("a"), false},
		"Recreated": {"a user deleted the claim, its finalizer, and created it again", mounted("1"), claim("b"), true},
		"Gone":      {"a user deleted the claim and its finalizer", mounted("1"), nil, true},
		"Unknown":   {"another operator led when the pod started", mounted("2"), claim("b"), false},
		"Unbound":   {"the same, and no pod has used the new one", mounted("2"), unbound, true},
		"Newer":     {"the same, and the claim is newer than the pod's place on its node", scheduled, created(1061), true},
		"Skewed":    {"the clocks of the API server and the scheduler differ", scheduled, created(1060), false},
		"Starting":  {"the kubelet mounts the new claim", starting, claim("b"), false},
		"Ended":     {"the kubelet has unmounted the volume", ended, claim("b"), false},
		"Pending":   {"a pod waits for its claim", &corev1.Pod{}, nil, false},
		"NoPod":     {"the next pod gets the claim", nil, claim("b"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var m mounts
			want := &etcdv1.EtcdCluster{}
			m.earlier(want, claim("a"), mounted("1"))
			if got := hasMounted(c.pod) && m.earlier(want, c.claim, c.pod); got != c.want {
				t.Errorf("%s: %v", c.reason, got)
			}
		})
	}
}

// Pods that no longer exist are forgotten, and those of other clusters are not.
func TestMountsOfPodsThatExist(t *testing.T) {
	var m mounts
	a, b := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{UID: "a"}}, &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{UID: "b"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "c"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}
	for _, want := range []*etcdv1.EtcdCluster{a, b} {
		m.earlier(want, claim, mounted("1"))
		m.earlier(want, claim, mounted("2"))
	}
	m.keep(a, map[string]*corev1.Pod{"e-0": mounted("2"), "e-1": nil})
	for want, kept := range map[*etcdv1.EtcdCluster]int{a: 1, b: 2} {
		if got := len(m.clusters[want.UID]); got != kept || !m.same(want, claim, mounted("2")) {
			t.Errorf("of cluster %s, %d pods are known: %v", want.UID, got, m.clusters[want.UID])
		}
	}
}

// A claim that is much newer than the member's StatefulSet is a user's.
func TestRestoredClaim(t *testing.T) {
	at := func(s int64) metav1.ObjectMeta { return metav1.ObjectMeta{CreationTimestamp: metav1.Unix(s, 0)} }
	set := &appsv1.StatefulSet{ObjectMeta: at(1000)}
	for created, want := range map[int64]bool{10: false, 1000: false, 1060: false, 1061: true} {
		if got := restored(&corev1.PersistentVolumeClaim{ObjectMeta: at(created)}, set); got != want {
			t.Errorf("created at %d: %v", created, got)
		}
	}
	if restored(nil, set) || restored(&corev1.PersistentVolumeClaim{ObjectMeta: at(2000)}, nil) {
		t.Error("without a claim, or a StatefulSet, there is nothing to compare")
	}
}

// TestNoRestartWithoutTheClaim: the cache may not have the deletion or the new claim yet, and only the pod has the
// data. Before a cluster forms, there is none.
func TestNoRestartWithoutTheClaim(t *testing.T) {
	formed, seen := formedCluster()
	claim := claimOf(formed, "my-etcd-1", etcd.ClaimMark(formed, seen, "my-etcd-1"))
	claim.Spec.VolumeName = "v"
	recreated := claim.DeepCopy()
	recreated.UID = "other"
	unformed := formed.DeepCopy()
	unformed.Status.ClusterID = ""
	first := etcd.World{Members: []etcd.Member{{Name: "my-etcd-1", Bootstrap: etcd.BootstrapCluster}}}
	cases := map[string]struct {
		want    *etcdv1.EtcdCluster
		seen    etcd.World
		claims  []client.Object
		refuses bool
	}{
		"Gone":      {formed, seen, nil, true},
		"Recreated": {formed, seen, []client.Object{recreated}, true},
		"Unformed":  {unformed, first, nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(c.claims...).Build()
			d := &Driver{client: api, live: api}
			v := view{world: c.seen, parts: parts{pods: map[string]*corev1.Pod{"my-etcd-1": mounted("1")}}}
			d.mounts.earlier(formed, claim, mounted("1"))
			err := d.recordVersion(t.Context(), c.want, v, lifecycle.Step{Target: "my-etcd-1", Args: map[string]string{etcd.ArgVersion: "3.5.35"}})
			if deferred := (*lifecycle.Deferred)(nil); errors.As(err, &deferred) != c.refuses || err != nil && !c.refuses {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestEarlierClaimsAreSeen: the member has its data as long as its pod exists. The API server decides, and not the cache.
func TestEarlierClaimsAreSeen(t *testing.T) {
	want, _ := formedCluster()
	bound := claimOf(want, "my-etcd-0", "")
	bound.Namespace, bound.Spec.VolumeName = want.Namespace, "v"
	cached := bound.DeepCopy()
	cached.Spec.VolumeName = ""
	d := &Driver{live: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(bound).Build()}
	p := parts{
		pods:   map[string]*corev1.Pod{"my-etcd-0": mounted("0"), "my-etcd-1": mounted("1")},
		claims: map[string]*corev1.PersistentVolumeClaim{"my-etcd-0": cached},
	}
	seen := etcd.World{Members: []etcd.Member{{Name: "my-etcd-0"}, {Name: "my-etcd-1"}}}
	if err := d.findEarlierClaims(t.Context(), want, p, seen); err != nil {
		t.Fatal(err)
	}
	for _, m := range seen.Members {
		if m.Volume.Earlier != (m.Name == "my-etcd-1") {
			t.Errorf("%s: %+v", m.Name, m.Volume)
		}
	}
}
