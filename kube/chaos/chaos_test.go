package chaos_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

var instance = does.Instance{
	Kind: etcdv1.GroupVersion.WithKind("EtcdCluster"), Key: client.ObjectKey{Namespace: "ns", Name: "e"}, OperatorNamespace: "system",
}

func labelled(name string, labels map[string]string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels, OwnerReferences: owners}
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, etcdv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ours := map[string]string{lifecycle.LabelInstance: "e"}
	foreign := map[string]string{lifecycle.LabelInstance: "e", does.Bystander: "true"}
	owner := metav1.OwnerReference{APIVersion: etcdv1.GroupVersion.String(), Kind: "EtcdCluster", Name: "e", UID: "u"}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: "u"}},
		&corev1.Pod{ObjectMeta: labelled("e-0-0", ours)}, &corev1.Pod{ObjectMeta: labelled("e-1-0", nil, owner)},
		&corev1.Pod{ObjectMeta: labelled("e-7-0", foreign)}, &corev1.Pod{ObjectMeta: labelled("other", nil)},
		&corev1.Secret{ObjectMeta: labelled("e-ca", ours), Data: map[string][]byte{"k": []byte("a")}},
		&corev1.Secret{ObjectMeta: labelled("e-tls", ours), Data: map[string][]byte{"k": []byte("b")}},
	).Build()
}

var catalogue = append(chaos.Generate(chaos.Pod, chaos.Secret, chaos.Service), append(chaos.Pods(), chaos.Manipulation{
	Name: "secret-swap", Object: chaos.Secret, Verb: chaos.VerbSwap,
})...)

func do(t *testing.T, c client.Client, name string, target int) (does.Done, error) {
	t.Helper()
	m, ok := catalogue.Named(name)
	if !ok {
		t.Fatalf("the catalogue has no %s", name)
	}
	return instance.Do(t.Context(), c, m, target)
}

func podNames(t *testing.T, c client.Client) []string {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	return names
}

func TestDeleteTouchesOneObjectOfTheInstance(t *testing.T) {
	c := newClient(t)
	done, err := do(t, c, "pod-delete-background", 3)
	if err != nil || !cmp.Equal(done.Objects, []string{"e-1-0"}) || done.Undo != nil {
		t.Errorf("%+v, %v", done, err)
	}
	if diff := cmp.Diff([]string{"e-0-0", "e-7-0", "other"}, podNames(t, c)); diff != "" {
		t.Error(diff)
	}
}

// The members of the instance e-1 are e-1-0 and so on: none of them is a member of e.
func TestASimilarNameIsNoMember(t *testing.T) {
	c := newClient(t)
	set := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: "s"}
	}
	err := errors.Join(
		c.Create(t.Context(), &corev1.Pod{ObjectMeta: labelled("e-2-0", nil, set("e-2"))}),
		c.Create(t.Context(), &corev1.Pod{ObjectMeta: labelled("e-1-0-0", map[string]string{lifecycle.LabelInstance: "e-1"}, set("e-1-0"))}),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := do(t, c, "pod-delete-background-all", 0); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"e-1-0-0", "e-7-0", "other"}, podNames(t, c)); diff != "" {
		t.Error(diff)
	}
}

func TestAllTouchesNoBystander(t *testing.T) {
	c := newClient(t)
	if _, err := do(t, c, "pod-delete-background-all", 0); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"e-7-0", "other"}, podNames(t, c)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatLastsIsUndone(t *testing.T) {
	for _, name := range []string{"pod-isolate", "pod-add-finalizer"} {
		c := newClient(t)
		done, err := do(t, c, name, 0)
		if err != nil || done.Undo == nil {
			t.Fatalf("%s: %+v, %v", name, done, err)
		}
		if clean(t, c) {
			t.Errorf("%s did nothing", name)
		}
		if err := done.Undo(t.Context()); err != nil || !clean(t, c) {
			t.Errorf("%s is not undone: %v", name, err)
		}
		if err := done.Undo(context.Background()); err != nil {
			t.Errorf("%s is undone twice: %v", name, err)
		}
	}
}

// The label that finds what a killed program has left behind finds nothing that users protect.
func TestAnIsolationHasALabelOfItsOwn(t *testing.T) {
	c := newClient(t)
	protected := &networkingv1.NetworkPolicy{ObjectMeta: labelled("deny", map[string]string{does.Bystander: "true"})}
	taken := &networkingv1.NetworkPolicy{ObjectMeta: labelled("chaos-e-0-0", nil)}
	if err := errors.Join(c.Create(t.Context(), protected), c.Create(t.Context(), taken)); err != nil {
		t.Fatal(err)
	}
	done, err := do(t, c, "pod-isolate", 0)
	if err != nil {
		t.Fatal(err)
	}
	left := &networkingv1.NetworkPolicyList{}
	if err := c.List(t.Context(), left, client.HasLabels{does.Isolated}); err != nil || len(left.Items) != 1 {
		t.Errorf("the label finds %d policies: %v", len(left.Items), err)
	}
	if err := errors.Join(done.Undo(t.Context()), c.List(t.Context(), left)); err != nil || len(left.Items) != 2 {
		t.Errorf("%d policies are left: %v", len(left.Items), err)
	}
}

// clean reports whether nothing is left of a manipulation that lasts.
func clean(t *testing.T, c client.Client) bool {
	t.Helper()
	pod, policies := &corev1.Pod{}, &networkingv1.NetworkPolicyList{}
	if err := errors.Join(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "e-0-0"}, pod), c.List(t.Context(), policies)); err != nil {
		t.Fatal(err)
	}
	return len(policies.Items) == 0 && len(pod.Finalizers) == 0 && pod.Labels[does.Isolated] == ""
}

// An edit is taken back where nothing else has set the field since.
func TestTakingBackLeavesLaterEdits(t *testing.T) {
	c := newClient(t)
	edit := func(patch string, lasts bool) does.Done {
		m := chaos.Manipulation{
			Name: "edit", Verb: chaos.VerbPatch, Patch: patch, Lasts: lasts,
			Object: chaos.Object{Kind: "EtcdCluster", APIVersion: etcdv1.GroupVersion.String(), Custom: true},
		}
		done, err := instance.Do(t.Context(), c, m, 0)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	edit(`{"spec":{"size":3}}`, false)
	wrong := edit(`{"spec":{"size":4,"paused":true,"version":"9"}}`, true)
	edit(`{"spec":{"version":"3.7"}}`, false)
	if err := wrong.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := &etcdv1.EtcdCluster{}
	if err := c.Get(t.Context(), instance.Key, got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Size != 3 || got.Spec.Paused || got.Spec.Version != "3.7" {
		t.Errorf("the spec is %+v", got.Spec)
	}
}

func TestSwapExchangesData(t *testing.T) {
	c := newClient(t)
	if _, err := do(t, c, "secret-swap", 1); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"e-ca": "b", "e-tls": "a"} {
		var s corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &s); err != nil || string(s.Data["k"]) != want {
			t.Errorf("%s has %q, %v", name, s.Data["k"], err)
		}
	}
}

func TestDoSaysWhatItCannotDo(t *testing.T) {
	c := newClient(t)
	if _, err := do(t, c, "service-delete-background", 0); !errors.Is(err, does.ErrNothing) {
		t.Errorf("without a Service: %v", err)
	}
	if _, err := do(t, c, "pod-kill", 0); !errors.Is(err, does.ErrNoAPI) {
		t.Errorf("a signal: %v", err)
	}
}
