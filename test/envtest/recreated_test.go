package envtest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// heldRequest holds the next write of a path until it is released.
type heldRequest struct {
	path                string
	arm, begun, release chan struct{}
}

func newHeldRequest(path string) *heldRequest {
	return &heldRequest{path: path, arm: make(chan struct{}, 1), begun: make(chan struct{}), release: make(chan struct{})}
}

func (h *heldRequest) pass(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, h.path) {
		return next.RoundTrip(r)
	}
	select {
	case <-h.arm:
		close(h.begun)
		<-h.release
	default:
	}
	return next.RoundTrip(r)
}

// An object that is deleted and created again while a reconcile runs is a new object, although
// the operator never finds its name free. What is missing of it is created, and is no drift.
func TestRecreatedObjectIsAppliedUnderReport(t *testing.T) {
	namespace := newNamespace(t)
	held := newHeldRequest("/memcacheds/m/status")
	op := startOperatorIn(t, setting{meddle: held.pass}, namespace)
	newPolicy(t, namespace, "report", func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.Kinds, s.DriftPolicy = []string{"Memcached"}, v1alpha1.DriftPolicyReport
	})
	old := newMemcached(t, namespace, "m", 1)
	deploymentOf(t, namespace, "m")
	quiet(t, namespace, op)
	held.arm <- struct{}{}
	declaresSize(t, namespace, 2)
	<-held.begun
	is := recreateMemcached(t, namespace, 2)
	eventually(t, "the operator's cache shows the new object", func() error {
		m := &cachev1.Memcached{}
		err := op.mgr.GetClient().Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "m"}, m)
		if err == nil && m.UID == old.UID {
			err = errNotYet
		}
		return err
	})
	close(held.release)
	for _, child := range []client.Object{&corev1.Service{}, &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}} {
		eventually(t, fmt.Sprintf("%T is provided", child), func() error {
			_, err := get(t, child, namespace, "m")
			return err
		})
		if !metav1.IsControlledBy(child, is) {
			t.Errorf("%T belongs to %v", child, child.GetOwnerReferences())
		}
	}
	left(t, namespace, "")
}

// recreateMemcached replaces the Memcached m, and deletes what the old one owned, as the
// garbage collector does.
func recreateMemcached(t *testing.T, namespace string, size int32) *cachev1.Memcached {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "m"}
	for _, obj := range []client.Object{
		&cachev1.Memcached{ObjectMeta: meta}, &appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta},
		&policyv1.PodDisruptionBudget{ObjectMeta: meta},
	} {
		must(t, api.Delete(t.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	return newMemcached(t, namespace, "m", size)
}
