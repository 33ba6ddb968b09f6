package driver

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// claimOf is a claim of the member with the mark, as Governor creates it.
func claimOf(want *etcdv1.EtcdCluster, member, mark string) *corev1.PersistentVolumeClaim {
	claim := etcd.Claim(want, lifecycle.Step{Target: member, Args: map[string]string{etcd.ArgVersion: "3.6.16"}})
	claim.Namespace, claim.UID = want.Namespace, "claim"
	if mark != "" {
		claim.Annotations[etcd.AnnotationMember] = mark
	}
	return claim
}

// formedCluster is a cluster whose first member is my-etcd-0, and the world with a learner my-etcd-1
// that has not started.
func formedCluster() (*etcdv1.EtcdCluster, etcd.World) {
	want := plain("")
	want.UID, want.Spec.Size = "uid", 3
	want.Status.Bootstrap = &etcdv1.BootstrapStatus{Formed: true, InitialMembers: []string{"my-etcd-0"}, NextMember: 2}
	return want, etcd.World{Listed: true, ClusterID: 1, Members: []etcd.Member{{Name: "my-etcd-1", ID: 0xb1, Role: etcd.Learner}}}
}

// A new member starts on no claim that Governor did not create for it: the claim may be a copy of another
// member's volume, and two processes would have its ID. Members that have started keep theirs.
func TestNewMemberUsesOnlyItsOwnClaim(t *testing.T) {
	joined := func(w *etcd.World) { w.Members[0].Joined = true }
	first := func(want *etcdv1.EtcdCluster, w *etcd.World) {
		want.Status.Bootstrap = &etcdv1.BootstrapStatus{InitialMembers: []string{"my-etcd-1"}}
		*w = etcd.World{Members: []etcd.Member{{Name: "my-etcd-1"}}}
	}
	silent := func(want *etcdv1.EtcdCluster, w *etcd.World, last etcdv1.MemberStatus) {
		last.Name, last.ID = "my-etcd-1", "b1"
		want.Status.Members = []etcdv1.MemberStatus{last}
		*w = etcd.World{Members: []etcd.Member{{Name: "my-etcd-1"}}}
	}
	cases := map[string]struct {
		reason, mark string
		edit         func(*etcdv1.EtcdCluster, *etcd.World)
		uses         bool
	}{
		"Own":         {"a crash interrupted its start", "b1", func(*etcdv1.EtcdCluster, *etcd.World) {}, true},
		"Planted":     {"a user created it", "", func(*etcdv1.EtcdCluster, *etcd.World) {}, false},
		"Copied":      {"it is a copy of another member's, with labels and annotations", "a0", func(*etcdv1.EtcdCluster, *etcd.World) {}, false},
		"CopyOfFirst": {"it is a copy of a first member's", "my-etcd-0.uid", func(*etcdv1.EtcdCluster, *etcd.World) {}, false},
		"Joined":      {"an older operator created it", "", func(_ *etcdv1.EtcdCluster, w *etcd.World) { joined(w) }, true},
		"HasSet":      {"its StatefulSet exists", "", func(_ *etcdv1.EtcdCluster, w *etcd.World) { w.Members[0].Set.Exists = true }, true},
		"HasPod":      {"its pod runs without its StatefulSet", "", func(_ *etcdv1.EtcdCluster, w *etcd.World) { w.Members[0].Pod.Exists = true }, true},
		"First":       {"a crash interrupted the start of a first member", "my-etcd-1.uid", first, true},
		"FirstTaken":  {"a user created the claim of a first member", "", first, false},
		"FirstOther":  {"it is the claim of another first member", "my-etcd-0.uid", first, false},
		"FirstListed": {"others formed the cluster before it started", "my-etcd-1.uid", func(want *etcdv1.EtcdCluster, w *etcd.World) {
			want.Status.Bootstrap.InitialMembers = []string{"my-etcd-1"}
			w.Members[0].Role = etcd.Voter
		}, true},
		"Silent": {"without a quorum the status shows that it ran", "", func(want *etcdv1.EtcdCluster, w *etcd.World) {
			silent(want, w, etcdv1.MemberStatus{Role: etcdv1.MemberRoleFollower, Version: "3.6.16"})
		}, true},
		"SilentNew": {"or that it did not", "", func(want *etcdv1.EtcdCluster, w *etcd.World) {
			silent(want, w, etcdv1.MemberStatus{Role: etcdv1.MemberRoleLearner})
		}, false},
		"SilentOwn": {"its own claim waits for the quorum", "b1", func(want *etcdv1.EtcdCluster, w *etcd.World) {
			silent(want, w, etcdv1.MemberStatus{Role: etcdv1.MemberRoleLearner})
		}, true},
		"Forgotten": {"the status was lost", "", func(_ *etcdv1.EtcdCluster, w *etcd.World) {
			*w = etcd.World{Members: []etcd.Member{{Name: "my-etcd-1"}}}
		}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want, seen := formedCluster()
			c.edit(want, &seen)
			usesClaim(t, want, seen, c.mark, c.reason, c.uses)
		})
	}
}

// usesClaim checks that the member starts on the claim with this mark, or leaves it as it is.
func usesClaim(t *testing.T, want *etcdv1.EtcdCluster, seen etcd.World, mark, reason string, uses bool) {
	t.Helper()
	claim := claimOf(want, "my-etcd-1", mark)
	reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim).Build()
	d := &Driver{client: reader, live: reader}
	err := d.recordVersion(t.Context(), want, view{world: seen}, lifecycle.Step{Target: "my-etcd-1", Args: map[string]string{etcd.ArgVersion: "3.5.35"}})
	var foreign *apply.ForeignError
	if errors.As(err, &foreign) == uses || uses && err != nil {
		t.Errorf("%s: %v", reason, err)
	}
	now := &corev1.PersistentVolumeClaim{}
	if err := reader.Get(t.Context(), client.ObjectKeyFromObject(claim), now); err != nil {
		t.Fatal(err)
	}
	if changed := now.Annotations[etcd.AnnotationVersion] == "3.5.35"; changed != uses {
		t.Errorf("%s: the claim has changed: %t", reason, changed)
	}
	p := parts{claims: map[string]*corev1.PersistentVolumeClaim{"my-etcd-1": claim}}
	seen.Members[0].Volume.Exists = true
	setAsideForeignClaims(want, &p, seen)
	if kept := p.claims["my-etcd-1"] != nil && seen.Members[0].Volume.Exists; kept != uses {
		t.Errorf("%s: the claim is the member's: %t", reason, kept)
	}
}

// A claim that Governor creates is the member's after a crash.
func TestCreatedClaimIsMarked(t *testing.T) {
	want, seen := formedCluster()
	writer := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	d := &Driver{client: writer, live: writer}
	s := lifecycle.Step{Target: "my-etcd-1", Args: map[string]string{etcd.ArgVersion: "3.6.16"}}
	for range 2 { // the second time after a crash
		if err := d.recordVersion(t.Context(), want, view{world: seen}, s); err != nil {
			t.Fatal(err)
		}
	}
}

// The claim of another is named, and no StatefulSet uses it.
func TestForeignClaimIsAnObstacle(t *testing.T) {
	if err := etcdv1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	want, seen := formedCluster()
	claim := claimOf(want, "my-etcd-1", "a0")
	reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim).Build()
	d := &Driver{client: reader, live: reader}
	p := parts{claims: map[string]*corev1.PersistentVolumeClaim{"my-etcd-1": claim}}
	setAsideForeignClaims(want, &p, seen)
	if err := d.findObstacles(t.Context(), want, p, seen.Members); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(etcd.Obstacle{Kind: "PersistentVolumeClaim", Name: claim.Name}, seen.Members[0].Obstacle); diff != "" {
		t.Error(diff)
	}
	s := lifecycle.Step{Name: etcd.StartMember, Target: "my-etcd-1", Args: map[string]string{etcd.ArgVersion: "3.6.16"}}
	if err := d.start(t.Context(), want, view{world: seen, parts: p}, s); err == nil {
		t.Error("the member starts on it")
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: "my-etcd-1"}}
	if err := reader.Get(t.Context(), client.ObjectKeyFromObject(set), set); !apierrors.IsNotFound(err) {
		t.Errorf("its StatefulSet: %v", err)
	}
}
