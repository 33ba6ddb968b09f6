package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// holder is the finalizer of an object whose deletion a policy can hold.
const holder = "governor.dev/finalize"

func frozen(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "sale"} }

// holdable runs an operator whose rings have no finalization steps, and creates one of
// three members.
func holdable(t *testing.T) (namespace string, op *operator) {
	t.Helper()
	installRings(t)
	namespace = newNamespace(t)
	op = startOperatorIn(t, setting{holdable: true}, namespace)
	newRing(t, namespace, "r", 3)
	ringReaches(t, namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	return namespace, op
}

func finalized(t *testing.T, namespace string, want bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("the ring has a finalizer: %t", want), func() error {
		r, err := get(t, &fakeapp.Ring{}, namespace, "r")
		if err == nil && slices.Contains(r.Finalizers, holder) != want {
			err = fmt.Errorf("it has %v", r.Finalizers)
		}
		return err
	})
}

func ringGone(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, "the ring is gone", func() error {
		_, err := get(t, &fakeapp.Ring{}, namespace, "r")
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
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	must(t, api.Delete(t.Context(), r))
	eventually(t, "the status says what holds the deletion", func() error {
		if r, err = get(t, &fakeapp.Ring{}, namespace, "r"); err != nil {
			return err
		}
		return condition(r.Status.Conditions, lifecycle.ConditionDeletionHeld, metav1.ConditionTrue, lifecycle.ReasonHeldByPolicy)
	})
	if err := condition(r.Status.Conditions, lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared"); err != nil || len(r.Status.Members) != 3 {
		t.Errorf("the status must speak of service: %v, members %v", err, r.Status.Members)
	}
	if c := apimeta.FindStatusCondition(r.Status.Conditions, lifecycle.ConditionDeletionHeld); !strings.Contains(c.Message, "frozen (sale)") {
		t.Errorf("it says %q", c.Message)
	}
	odd, err := get(t, &corev1.ConfigMap{}, namespace, "r-odd")
	must(t, err)
	must(t, api.Delete(t.Context(), odd))
	eventually(t, "what belongs to the object is provided on", func() error {
		_, err := get(t, &corev1.ConfigMap{}, namespace, "r-odd")
		return err
	})
	odd, err = get(t, &corev1.ConfigMap{}, namespace, "r-odd")
	must(t, err)
	odd.OwnerReferences = nil
	must(t, api.Update(t.Context(), odd))
	ringReaches(t, namespace, "r", lifecycle.ConditionResourcesBlocked, metav1.ConditionTrue, "OwnerDeleting")
	lost := losePod(t, namespace)
	eventually(t, "what lost its owner delays no repair", func() error {
		is, err := get(t, &corev1.ConfigMap{}, namespace, lost.GetName())
		if err == nil && is.UID == lost.GetUID() {
			err = errNotYet
		}
		return err
	})
	odd, err = get(t, &corev1.ConfigMap{}, namespace, "r-odd")
	must(t, err)
	if len(odd.OwnerReferences) > 0 {
		t.Error("an object is adopted for an owner that is being deleted")
	}
	quiet(t, namespace, op)
	must(t, api.Delete(t.Context(), policy))
	ringGone(t, namespace)
}

// The finalizer is removed together with the policies that need it.
func TestFinalizerIsRemovedWithPolicy(t *testing.T) {
	namespace, op := holdable(t)
	policy := newPolicy(t, namespace, "sale", frozen)
	finalized(t, namespace, true)
	must(t, api.Delete(t.Context(), policy))
	finalized(t, namespace, false)
	op.stop()
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	must(t, api.Delete(t.Context(), r))
	ringGone(t, namespace) // without an operator
}

// An older operator added a finalizer to every object.
func TestFinalizerOfOlderOperatorIsRemoved(t *testing.T) {
	namespace, op := holdable(t)
	op.stop()
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	r.Finalizers = []string{holder}
	must(t, api.Update(t.Context(), r))
	op = startOperatorIn(t, setting{holdable: true, lists: op.lists}, namespace)
	finalized(t, namespace, false)
	op.stop()
	r, err = get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	r.Finalizers = []string{holder}
	must(t, api.Update(t.Context(), r))
	must(t, api.Delete(t.Context(), r))
	startOperatorIn(t, setting{holdable: true, lists: op.lists}, namespace)
	ringGone(t, namespace)
}

// undeletable creates an EtcdCluster that no operator runs.
func undeletable(t *testing.T, namespace, name string, edit func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	u := etcdObject(t, "v1", name, namespace, "")
	edit(u)
	must(t, api.Create(t.Context(), u))
	t.Cleanup(func() {
		_ = api.Patch(context.WithoutCancel(t.Context()), u, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	return u
}

func finalizers(names ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetFinalizers(names) }
}

func bypassed(names ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetFinalizers(names)
		u.SetAnnotations(map[string]string{lifecycle.AnnotationBypass: "it goes", lifecycle.AnnotationBypassBy: "admin"})
	}
}

// refusesDeletion waits until the API server rejects the deletion with these words.
func refusesDeletion(t *testing.T, u *unstructured.Unstructured, words string, how ...client.DeleteOption) {
	t.Helper()
	deletionRefused(t, u, words, func() error { return tryDeletion(t, u, how...) })
}

func refusesDeletionBy(t *testing.T, user string, u *unstructured.Unstructured, words string, how ...client.DeleteOption) {
	t.Helper()
	deletionRefused(t, u, words, func() error { return deletesAs(t, user, u, how...) })
}

func deletionRefused(t *testing.T, u *unstructured.Unstructured, words string, try func() error) {
	t.Helper()
	eventually(t, "the deletion of "+u.GetName()+" is refused", func() error {
		if err := try(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), words) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

func tryDeletion(t *testing.T, u *unstructured.Unstructured, how ...client.DeleteOption) error {
	t.Helper()
	return api.Delete(t.Context(), u.DeepCopy(), append(how, client.DryRunAll)...)
}

// deletesAs tries the deletion as that user.
func deletesAs(t *testing.T, user string, u *unstructured.Unstructured, how ...client.DeleteOption) error {
	t.Helper()
	return asUser(t, user).Delete(t.Context(), u.DeepCopy(), append(how, client.DryRunAll)...)
}

// Foreground and orphan deletions do not wait for a finalizer. So the API server rejects
// them while a policy can hold the deletion.
func TestForegroundAndOrphanDeletionsAreRefused(t *testing.T) {
	applied(t, "../../config/manager/deletion.yaml")
	namespace := newNamespace(t)
	free := undeletable(t, namespace, "free", finalizers())
	held := undeletable(t, namespace, "held", finalizers(holder))
	passed := undeletable(t, namespace, "passed", bypassed(holder))
	for _, how := range []client.PropagationPolicy{client.PropagationPolicy(metav1.DeletePropagationForeground), client.PropagationPolicy(metav1.DeletePropagationOrphan)} {
		refusesDeletion(t, held, "use --cascade=background", how)
		must(t, errors.Join(tryDeletion(t, free, how), tryDeletion(t, passed, how)))
	}
	must(t, tryDeletion(t, held, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	must(t, tryDeletion(t, held))
}

// Without a propagation policy, the API server derives it from the object's own
// finalizers.
func TestFinalizersThatSelectPropagationAreRefused(t *testing.T) {
	applied(t, "../../config/manager/deletion.yaml")
	namespace, orphan := newNamespace(t), true
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	for i, chosen := range []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents} {
		held := undeletable(t, namespace, fmt.Sprintf("held-%d", i), finalizers(holder, chosen))
		refusesDeletion(t, held, "use --cascade=background")
		refusesDeletion(t, held, "use --cascade=background", &client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: &orphan}}) //nolint:staticcheck // old clients send it
		must(t, tryDeletion(t, held, background))                                                                                          // as kubectl, and the namespace controller
		must(t, tryDeletion(t, undeletable(t, namespace, fmt.Sprintf("free-%d", i), finalizers(chosen))))
		must(t, tryDeletion(t, undeletable(t, namespace, fmt.Sprintf("passed-%d", i), bypassed(holder, chosen))))
	}
}

// A write that omits the finalizers, as kubectl replace does, removes the hold until the
// operator restores it.
func TestDeletionWithoutFinalizerIsRefused(t *testing.T) {
	installRings(t)
	applied(t, "../../config/manager/deletion.yaml")
	namespace := newNamespace(t)
	bare := undeletable(t, namespace, "bare", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"tier": "production"}) })
	other := undeletable(t, namespace, "other", finalizers())
	passed := undeletable(t, namespace, "passed", bypassed())
	passed.SetLabels(bare.GetLabels())
	must(t, api.Update(t.Context(), passed))
	policy := newPolicy(t, namespace, "sale", func(s *v1alpha1.OperationPolicySpec) {
		frozen(s)
		s.Selector.Kinds = []string{"EtcdCluster"}
		s.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: bare.GetLabels()}
	})
	refusesDeletion(t, bare, `the policy "`+policy.Name+`" can hold the deletion of bare`)
	must(t, errors.Join(tryDeletion(t, other), tryDeletion(t, passed)))
	bare.SetFinalizers([]string{holder})
	must(t, api.Update(t.Context(), bare))
	must(t, tryDeletion(t, bare))
	bare.SetFinalizers([]string{"example.com/other"})
	must(t, api.Update(t.Context(), bare))
	refusesDeletion(t, bare, "can hold the deletion of bare")
	must(t, api.Delete(t.Context(), policy))
	eventually(t, "no policy holds it", func() error { return tryDeletion(t, bare) })
}

// A user bypasses the policies for an urgent step. That does not permit another user, who may only edit and delete, to
// delete the object: neither as it is, nor after a write that omits the finalizer.
func TestBypassOfAnotherUserPermitsNoDeletion(t *testing.T) {
	installRings(t)
	applied(t, "../../config/manager/deletion.yaml")
	applied(t, "../../config/manager/bypass.yaml")
	namespace := newNamespace(t)
	deletes := rbacv1.PolicyRule{APIGroups: []string{"etcd.database.coreos.com"}, Resources: []string{"etcdclusters"}, Verbs: []string{"delete"}}
	grant(t, namespace, "delete", deletes, "ann", "bob")
	bind(t, namespace, "bypass", bypassRole, "ann")
	newPolicy(t, namespace, "sale", func(s *v1alpha1.OperationPolicySpec) {
		frozen(s)
		s.Selector.Kinds = []string{"EtcdCluster"}
	})
	held := undeletable(t, namespace, "held", bypassed(holder))
	bare := undeletable(t, namespace, "bare", bypassed())
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		refusesDeletionBy(t, "bob", held, "the annotation governor.dev/bypass-policy of held, set by admin, does not permit bob to delete it", client.PropagationPolicy(how))
		eventually(t, "ann may", func() error { return deletesAs(t, "ann", held, client.PropagationPolicy(how)) })
	}
	refusesDeletionBy(t, "bob", bare, "can hold the deletion of bare")
	must(t, deletesAs(t, "ann", bare))
	held.SetAnnotations(nil)
	must(t, api.Update(t.Context(), held))
	must(t, deletesAs(t, "bob", held)) // the operator holds it by the finalizer
	held.SetAnnotations(map[string]string{lifecycle.AnnotationBypass: "it goes", lifecycle.AnnotationBypassBy: "admin"})
	must(t, api.Update(t.Context(), held))
	must(t, api.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	eventually(t, "the namespace controller may", func() error { return errors.Join(deletesAs(t, "bob", held), deletesAs(t, "bob", bare)) })
}

// In a terminating namespace nothing can be kept: its controller deletes all objects.
func TestDeletionWithNamespaceIsAccepted(t *testing.T) {
	installRings(t)
	applied(t, "../../config/manager/deletion.yaml")
	namespace := newNamespace(t)
	bare := undeletable(t, namespace, "bare", finalizers())
	newPolicy(t, namespace, "sale", func(s *v1alpha1.OperationPolicySpec) {
		frozen(s)
		s.Selector.Kinds = []string{"EtcdCluster"}
	})
	refusesDeletion(t, bare, "can hold the deletion of bare")
	must(t, api.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	eventually(t, "it goes with its namespace", func() error { return tryDeletion(t, bare) })
}
