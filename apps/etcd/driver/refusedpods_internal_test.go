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
)

func TestRefusedPodsAreReported(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "e-0", UID: "u", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
	}}
	event := func(name, words string, ago time.Duration) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Reason: "FailedCreate", Message: words,
			InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Name: "e-0", UID: set.UID},
			LastTimestamp:  metav1.NewTime(noon.Add(-ago)),
		}
	}
	quota := `create Pod e-0-0 in StatefulSet e-0 failed error: pods "e-0-0" is forbidden: exceeded quota: q.`
	all := []client.Object{event("old", "outdated", time.Hour), event("first", "earlier", time.Minute), event("last", quota, time.Second)}
	byField := func(get func(*corev1.Event) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{get(o.(*corev1.Event))} }
	}
	live := fake.NewClientBuilder().WithObjects(all...).
		WithIndex(&corev1.Event{}, "involvedObject.kind", byField(func(e *corev1.Event) string { return e.InvolvedObject.Kind })).
		WithIndex(&corev1.Event{}, "involvedObject.name", byField(func(e *corev1.Event) string { return e.InvolvedObject.Name })).
		WithIndex(&corev1.Event{}, "reason", byField(func(e *corev1.Event) string { return e.Reason })).Build()
	d := &Driver{live: live, now: func() time.Time { return noon }}
	p := parts{sets: map[string]*appsv1.StatefulSet{"e-0": set}}
	problem := func(m etcd.Member) string {
		members := []etcd.Member{m}
		d.findRefusedPods(t.Context(), p, members)
		return members[0].Set.Problem
	}
	if said := problem(etcd.Member{Name: "e-0"}); said != `pods "e-0-0" is forbidden: exceeded quota: q` {
		t.Errorf("it says %q", said)
	}
	if said := problem(etcd.Member{Name: "e-0", Pod: etcd.Pod{Exists: true}}); said != "" {
		t.Errorf("for an existing pod the problem is %q", said)
	}
	if said := problem(etcd.Member{Name: "e-0", Since: noon.Add(-time.Second)}); said != "" {
		t.Errorf("for a pod that was just deleted the problem is %q", said)
	}
}
