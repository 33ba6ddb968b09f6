package envtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/ring"
)

// holder is the finalizer of an object whose deletion a policy can hold.
const holder = "governor.dev/farewell"

func frozen(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "sale"} }

// holdable runs an operator whose rings have no farewell steps, and makes one of three members.
func holdable(t *testing.T) (namespace string, op *operator) {
	t.Helper()
	installRings(t)
	namespace = newNamespace(t)
	op = startOperatorIn(t, setting{holdable: true}, namespace)
	newRing(t, namespace, "r", 3)
	ringReaches(t, namespace, "r", lifecycle.Ready, metav1.ConditionTrue, "AsDeclared")
	return namespace, op
}

func finalized(t *testing.T, namespace string, want bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("the ring has a finalizer: %t", want), func() error {
		r, err := get(t, &ring.Ring{}, namespace, "r")
		if err == nil && slices.Contains(r.Finalizers, holder) != want {
			err = fmt.Errorf("it has %v", r.Finalizers)
		}
		return err
	})
}

func ringGone(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, "the ring is gone", func() error {
		_, err := get(t, &ring.Ring{}, namespace, "r")
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %w", err)
	})
}

func TestHeldDeletionHoldsEverything(t *testing.T) {
	namespace, op := holdable(t)
	finalized(t, namespace, false)
	policy := newPolicy(t, namespace, "sale", frozen)
	finalized(t, namespace, true)
	r, err := get(t, &ring.Ring{}, namespace, "r")
	must(t, err)
	must(t, api.Delete(t.Context(), r))
	eventually(t, "the status says what holds the deletion", func() error {
		if r, err = get(t, &ring.Ring{}, namespace, "r"); err != nil {
			return err
		}
		return condition(r.Status.Conditions, lifecycle.DeletionHeld, metav1.ConditionTrue, lifecycle.HeldByPolicy)
	})
	if err := condition(r.Status.Conditions, lifecycle.Ready, metav1.ConditionTrue, "AsDeclared"); err != nil || len(r.Status.Members) != 3 {
		t.Errorf("the status must speak of service: %v, members %v", err, r.Status.Members)
	}
	if c := apimeta.FindStatusCondition(r.Status.Conditions, lifecycle.DeletionHeld); !strings.Contains(c.Message, "frozen (sale)") {
		t.Errorf("it says %q", c.Message)
	}
	odd, err := get(t, &corev1.ConfigMap{}, namespace, "r-odd")
	must(t, err)
	must(t, api.Delete(t.Context(), odd))
	eventually(t, "what belongs to the object is provided on", func() error {
		_, err := get(t, &corev1.ConfigMap{}, namespace, "r-odd")
		return err
	})
	quiet(t, namespace, op)
	must(t, api.Delete(t.Context(), policy))
	ringGone(t, namespace)
}

// A finalizer goes with the policies that asked for it.
func TestFinalizerGoesWithThePolicy(t *testing.T) {
	namespace, op := holdable(t)
	policy := newPolicy(t, namespace, "sale", frozen)
	finalized(t, namespace, true)
	must(t, api.Delete(t.Context(), policy))
	finalized(t, namespace, false)
	op.stop()
	r, err := get(t, &ring.Ring{}, namespace, "r")
	must(t, err)
	must(t, api.Delete(t.Context(), r))
	ringGone(t, namespace) // without an operator
}

// An older operator gave every object a finalizer.
func TestFinalizerOfAnOlderOperatorGoes(t *testing.T) {
	namespace, op := holdable(t)
	op.stop()
	r, err := get(t, &ring.Ring{}, namespace, "r")
	must(t, err)
	r.Finalizers = []string{holder}
	must(t, api.Update(t.Context(), r))
	op = startOperatorIn(t, setting{holdable: true, lists: op.lists}, namespace)
	finalized(t, namespace, false)
	op.stop()
	r, err = get(t, &ring.Ring{}, namespace, "r")
	must(t, err)
	r.Finalizers = []string{holder}
	must(t, api.Update(t.Context(), r))
	must(t, api.Delete(t.Context(), r))
	startOperatorIn(t, setting{holdable: true, lists: op.lists}, namespace)
	ringGone(t, namespace)
}

// Foreground and orphan deletions do not wait for a finalizer, so the API server refuses them while a policy can hold
// the deletion.
func TestCascadesThatCannotBeHeldAreRefused(t *testing.T) {
	raw, err := os.ReadFile("../../config/manager/deletion.yaml")
	must(t, err)
	for _, doc := range bytes.Split(raw, []byte("---\n")) {
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(doc, &u.Object))
		must(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")))
		t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), u) })
	}
	namespace := newNamespace(t)
	made := func(name string, edit func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := etcdObject(t, "v1", name, namespace, "")
		edit(u)
		must(t, api.Create(t.Context(), u))
		t.Cleanup(func() {
			_ = api.Patch(context.WithoutCancel(t.Context()), u, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		})
		return u
	}
	free := made("free", func(*unstructured.Unstructured) {})
	held := made("held", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{holder}) })
	passed := made("passed", func(u *unstructured.Unstructured) {
		u.SetFinalizers([]string{holder})
		u.SetAnnotations(map[string]string{lifecycle.AnnotationBypass: "it goes", lifecycle.AnnotationBypassBy: "admin"})
	})
	try := func(u *unstructured.Unstructured, how metav1.DeletionPropagation) error {
		return api.Delete(t.Context(), u, client.PropagationPolicy(how), client.DryRunAll)
	}
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		eventually(t, "it is refused", func() error {
			if err := try(held, how); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "use --cascade=background") {
				return fmt.Errorf("%s: got %w", how, err)
			}
			return nil
		})
		must(t, errors.Join(try(free, how), try(passed, how)))
	}
	must(t, try(held, metav1.DeletePropagationBackground))
	must(t, api.Delete(t.Context(), held.DeepCopy(), client.DryRunAll))
}
