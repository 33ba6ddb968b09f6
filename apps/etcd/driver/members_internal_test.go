package driver

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
)

// While no quorum answers, a member is identified by its data. A pod without a StatefulSet keeps a
// claim that is being deleted, so it counts as a member as long as it exists.
func TestOrphanedPodKeepsDeletedClaim(t *testing.T) {
	want := plain("")
	going := &metav1.Time{Time: noon}
	controlled := []metav1.OwnerReference{{Kind: "StatefulSet", UID: "set", Controller: new(true)}}
	cases := map[string]struct {
		reason string
		pod    *corev1.Pod
		known  bool
	}{
		"Orphan": {"the pod stays", &corev1.Pod{}, true},
		"Going":  {"the pod ends, and the claim with it", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: going}}, false},
		"Owned":  {"the pod is deleted with its StatefulSet", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: controlled}}, false},
		"None":   {"the claim is a remnant of a deleted member", nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: etcd.ClaimName(want, "my-etcd-0"), DeletionTimestamp: going}}
			p := parts{claims: map[string]*corev1.PersistentVolumeClaim{"my-etcd-0": claim}, pods: map[string]*corev1.Pod{}}
			if c.pod != nil {
				p.pods["my-etcd-0"] = c.pod
			}
			if got := len(members(want, p, memberList{}, nil)) == 1; got != c.known {
				t.Errorf("%s: known %v", c.reason, got)
			}
		})
	}
}

// A policy may hold a deletion, and kubectl may only preview it: the members' times to answer go on.
func TestObservationOfADeletionLeavesNoTrace(t *testing.T) {
	want := plain("")
	want.UID = "u"
	api := fake.NewClientBuilder().Build()
	d := New(kube.Access{Client: api, Live: api, Now: time.Now}).(*Driver)
	unhealthy := []etcd.Member{{Name: "my-etcd-0", Health: etcd.Unhealthy}}
	d.healthTimes.record(want, unhealthy, true, noon)
	d.sentinel.watches[client.ObjectKeyFromObject(want)] = watch{leader: 1}
	deleted := want.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	if _, err := d.Observe(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	if got := sinceOf(d.healthTimes, want, unhealthy[0], noon.Add(time.Hour)); !got.Equal(noon) {
		t.Errorf("the member is unhealthy since %s, want %s", got, noon)
	}
	if len(d.sentinel.watches) != 1 {
		t.Error("the sentinel no longer guards the cluster")
	}
}

// Until the kubelet has stopped it, a deleted pod has the old template. One deletion is enough.
func TestAPodThatIsBeingDeletedIsNotStale(t *testing.T) {
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{}}, Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}}
	for _, going := range []*metav1.Time{nil, {Time: noon}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: going, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "old"}}}
		p := parts{sets: map[string]*appsv1.StatefulSet{"my-etcd-0": set}, pods: map[string]*corev1.Pod{"my-etcd-0": pod}}
		if m := fromKubernetes(plain(""), p, "my-etcd-0"); m.Pod.Stale != (going == nil) {
			t.Errorf("a pod deleted at %v is stale: %v", going, m.Pod.Stale)
		}
	}
}

// A step that was carried out is not carried out again: its pod stays, unless it still cannot run.
func TestOnlyAPodThatCannotRunIsRestartedAgain(t *testing.T) {
	step := lifecycle.Step{Args: map[string]string{etcd.ArgRevision: "r", etcd.ArgVersion: "3.6.0"}}
	as := func(edit func(*etcd.Member)) etcd.Member {
		m := etcd.Member{Pod: etcd.Pod{Revision: "r", Version: "3.6.0"}}
		edit(&m)
		return m
	}
	cases := map[string]struct {
		is    etcd.Member
		keeps bool
	}{
		"Done":          {as(func(*etcd.Member) {}), true},
		"OtherSpec":     {as(func(m *etcd.Member) { m.Pod.Revision = "old" }), false},
		"Ended":         {as(func(m *etcd.Member) { m.Pod.Ended = true }), false},
		"CrashLoop":     {as(func(m *etcd.Member) { m.Pod.Trouble = lifecycle.PodProblemCrashLoopBackOff }), false},
		"Starts":        {as(func(m *etcd.Member) { m.Pod.LastWords = "panic: no space left on device" }), true},
		"FullThenGrown": {as(func(m *etcd.Member) { m.Pod.LastWords, m.Volume.AwaitsPod = "panic: no space left on device", true }), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := keepsPod(c.is, step); got != c.keeps {
				t.Errorf("the pod stays: %v", got)
			}
		})
	}
}
