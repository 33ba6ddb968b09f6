package envtest_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// novelty is an object that only the newer version applies.
const novelty = "example.com/novelty"

// newer is a later version of memcached's planner.
type newer struct{ memcached.Planner }

func (p newer) Resources(want *cachev1.Memcached, seen memcached.World) ([]lifecycle.Object, error) {
	all, err := p.Planner.Resources(want, seen)
	for _, obj := range all {
		if svc, ok := obj.(*corev1.Service); ok {
			metav1.SetMetaDataAnnotation(&svc.ObjectMeta, novelty, "yes")
		}
	}
	return all, err
}

// rival starts an operator of a version, which competes for the namespace's lease.
func rival(t *testing.T, namespace, version string, s setting) *operator {
	t.Helper()
	return startOperatorIn(t, s, namespace, func(o *ctrl.Options, e *engine.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "test", namespace
		o.LeaderElectionReleaseOnCancel, e.Version = true, version
	})
}

// provides waits until the Service is as that version declares it, and until writes stop.
func (o *operator) provides(t *testing.T, namespace string, isNewer bool) {
	t.Helper()
	eventually(t, "the service is as the leader declares it", func() error {
		svc, err := get(t, &corev1.Service{}, namespace, "m")
		if err == nil && (svc.Annotations[novelty] == "yes") != isNewer {
			return errNotYet
		}
		return err
	})
	quiet(t, namespace, o)
}

// During an upgrade of the operator both versions run. Only the leader acts. Each leader
// corrects what it declares differently once, and the other one never reverts it.
func TestTwoVersionsDoNotFight(t *testing.T) {
	installRings(t)
	namespace := newNamespace(t)
	lists := fakeapp.NewLists()
	old := setting{lists: lists}
	first := rival(t, namespace, "v1", old)
	eventually(t, "the first leads", func() error {
		_, err := get(t, &coordinationv1.Lease{}, namespace, "test")
		return err
	})
	newMemcached(t, namespace, "m", 1)
	playKubernetes(t, namespace, "m")
	newRing(t, namespace, "witness", 1)
	reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	second := rival(t, namespace, "v2", setting{lists: lists, planner: newer{}})
	first.provides(t, namespace, false)
	idle(t, second, 0)

	first.stop()
	second.provides(t, namespace, true)
	resize(t, namespace, "witness", func(s *fakeapp.Spec) { s.Size = 3 })
	ringReaches(t, namespace, "witness", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	quiet(t, namespace, second)
	only(t, second.since(0), "PATCH /api/v1/namespaces/"+namespace+"/services/m")
	before := second.writes.Load()
	third := rival(t, namespace, "v1", old)
	quiet(t, namespace, third)
	idle(t, second, before)
	idle(t, third, 0)

	second.stop()
	third.provides(t, namespace, false)
	only(t, third.since(0), "PATCH /api/v1/namespaces/"+namespace+"/services/m")
	for i, e := range bookOf(t, namespace, "witness").Entries {
		want := "v2"
		if i == 0 {
			want = "v1"
		}
		if e.Operator != want {
			t.Errorf("step %d, %s, was taken by %s, want %s", i, e.Step, e.Operator, want)
		}
	}
}

// idle fails if the operator wrote anything after its first n writes.
func idle(t *testing.T, op *operator, n int64) {
	t.Helper()
	for _, line := range op.since(n) {
		t.Errorf("it must not write: %s", line)
	}
}

// only fails unless exactly one of memcached's children was written, and once.
func only(t *testing.T, wrote []string, want string) {
	t.Helper()
	n := 0
	for _, line := range wrote {
		switch {
		case line == want:
			n++
		case child(line):
			t.Errorf("it must not write: %s", line)
		}
	}
	if n != 1 {
		t.Errorf("%s was made %d times, want once", want, n)
	}
}
