package subject

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

// meta is that of an object of etcd cluster e, by its labels and, if it has a UID, by its owner.
func meta(name, app string, owner *metav1.OwnerReference) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{lifecycle.LabelInstance: "e", lifecycle.LabelApp: app}}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return m
}

func controller(kind, name, uid string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: "x/v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}
}

func pod(name, app string, owner *metav1.OwnerReference, isReady, volume bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(name, app, owner), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if isReady {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if volume {
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
	}
	return p
}

// watched is the subject of the cluster e, beside a Memcached of the same name.
func watched(t *testing.T, policies ...client.Object) (*Subject, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), etcdv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cluster := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: "u", Generation: 2}}
	cluster.Status.ObservedGeneration = 2
	cluster.Status.Members = []etcdv1.MemberStatus{{Name: "e-0", ID: "a1"}, {Name: "e-1"}}
	cluster.Status.Conditions = []metav1.Condition{{Type: lifecycle.ConditionReady, Status: metav1.ConditionTrue, Reason: "AsDeclared"}}
	ended := pod("e-9-0", "etcd", nil, false, true)
	ended.Status.Phase = corev1.PodFailed
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, ended,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{experiment.OptInLabel: experiment.OptInValue}}},
		pod("e-0-0", "etcd", controller("StatefulSet", "e-0", "s0"), true, true), pod("e-1-0", "etcd", controller("StatefulSet", "e-1", "s1"), false, false),
		&corev1.PersistentVolumeClaim{ObjectMeta: func() metav1.ObjectMeta { m := meta("c", "etcd", nil); m.UID = "c1"; return m }()},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "of-another", UID: "c2"}},
		pod("cache-x", "memcached", controller("ReplicaSet", "e-x", "r"), true, false),
		&corev1.ConfigMap{ObjectMeta: meta("e-0-bootstrap", "etcd", controller("EtcdCluster", "e", "u"))},
		&corev1.ConfigMap{ObjectMeta: meta("a-copy-of-a-user", "etcd", nil)},
		&corev1.ConfigMap{ObjectMeta: meta("e.etcdcluster-history", "etcd", controller("EtcdCluster", "e", "u"))},
		&corev1.ConfigMap{ObjectMeta: meta("cache", "memcached", controller("Memcached", "e", "m"))},
		&policyv1.PodDisruptionBudget{ObjectMeta: meta("e", "etcd", controller("EtcdCluster", "e", "u")), Status: policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 2}},
	).WithObjects(policies...).Build()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(etcdv1.GroupVersion.WithKind("EtcdCluster"))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), object); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }
	return (&Experiment{Client: c, User: "alice", Now: now}).Of(t.Context(), object)
}

func TestLookSeesOnlyWhatBelongsToTheInstance(t *testing.T) {
	s, err := watched(t)
	if err != nil || s.app != "etcd" {
		t.Fatalf("%v, app %q", err, s.app)
	}
	state, err := s.Look(t.Context())
	if err != nil || len(state.Pods) != 2 || state.Serving() != 1 || !state.Budget || state.MinReady != 2 {
		t.Errorf("%+v, %v", state, err)
	}
	if state.Pods[0].Volatile || !state.Pods[1].Volatile {
		t.Errorf("data goes with a pod that has no volume and is none of a Deployment: %+v", state.Pods)
	}
	if !state.OptedIn || !state.Ready || state.Changing || state.Paused || state.Deleting {
		t.Errorf("%+v", state)
	}
	m, _ := experiment.Safe().Named("configmap-edit-empty")
	for target := range 3 {
		if names, err := s.Names(t.Context(), m, target); err != nil || len(names) != 1 || names[0] != "e-0-bootstrap" {
			t.Errorf("target %d is %v, %v: neither the history nor another kind's object may be", target, names, err)
		}
	}
}

func TestDataGoesWithAPodWhoseClaimDoesNotOutliveIt(t *testing.T) {
	kept := map[string]bool{"c": true}
	cases := map[string]struct {
		pod  *corev1.Pod
		kept map[string]bool
		want bool
	}{
		"WithClaim":       {pod("p", "etcd", controller("StatefulSet", "e", "s"), true, true), kept, false},
		"ClaimIsDeleted":  {pod("p", "etcd", controller("StatefulSet", "e", "s"), true, true), map[string]bool{"c": false}, true},
		"ClaimIsGone":     {pod("p", "etcd", controller("StatefulSet", "e", "s"), true, true), nil, true},
		"NoClaim":         {pod("p", "etcd", controller("StatefulSet", "e", "s"), true, false), kept, true},
		"OfNobody":        {pod("p", "etcd", nil, true, false), kept, true},
		"OfACustomObject": {pod("p", "etcd", controller("PodSet", "e", "s"), true, false), kept, true},
		"OfADeployment":   {pod("p", "etcd", controller("ReplicaSet", "e", "s"), true, false), kept, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := volatile(c.pod, c.kept); got != c.want {
				t.Errorf("volatile is %v, want %v", got, c.want)
			}
		})
	}
}

func TestLookAsksPolicies(t *testing.T) {
	policy := func(edit func(*v1alpha1.OperationPolicySpec)) *v1alpha1.OperationPolicy {
		p := &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		edit(&p.Spec)
		return p
	}
	approval := &v1alpha1.ApprovalRule{Classes: []v1alpha1.StepClass{"Disruptive"}}
	cases := map[string]struct {
		edit func(*v1alpha1.OperationPolicySpec)
		want string
	}{
		"Freeze": {func(s *v1alpha1.OperationPolicySpec) { s.Freeze = &v1alpha1.Freeze{Reason: "audit"} }, `the policy "p" holds it: frozen (audit) until its spec.freeze is removed`},
		"ClosedWindow": {func(s *v1alpha1.OperationPolicySpec) {
			s.Windows = []v1alpha1.Window{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
		}, `the policy "p" holds it: no maintenance window is open; the next opens Fri 2026-01-02 02:00 UTC`},
		"OpenWindow": {func(s *v1alpha1.OperationPolicySpec) {
			s.Windows = []v1alpha1.Window{{Schedule: "0 11 * * *", Duration: metav1.Duration{Duration: 2 * time.Hour}}}
		}, ""},
		"Approval": {func(s *v1alpha1.OperationPolicySpec) { s.Approval = approval }, ""},
		"RepairsAreHeld": {func(s *v1alpha1.OperationPolicySpec) {
			s.Approval, s.RepairPolicy = approval, v1alpha1.RepairPolicyHold
		}, `the policy "p" holds it: a step that is Disruptive needs an approval`},
		"Paused":    {func(s *v1alpha1.OperationPolicySpec) { s.Paused = true }, "it is paused"},
		"OtherKind": {func(s *v1alpha1.OperationPolicySpec) { s.Paused, s.Selector.Kinds = true, []string{"Memcached"} }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := watched(t, policy(c.edit))
			if err != nil {
				t.Fatal(err)
			}
			state, err := s.Look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			state.Pods = nil // they are another reason to wait
			if why := state.Unfit(); c.want == "" && why != "" || len(why) < len(c.want) || why[:len(c.want)] != c.want {
				t.Errorf("got %q, want %q", why, c.want)
			}
		})
	}
}

func TestRestored(t *testing.T) {
	object := func(kind, uid string, labels map[string]string, data map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "data": data}}
		o.SetUID(types.UID(uid))
		o.SetLabels(labels)
		return o
	}
	full := map[string]any{"a": "1"}
	more := map[string]any{"a": "1", "other": "2"}
	label, both := map[string]string{"l": "1"}, map[string]string{"l": "1", "other": "2"}
	cases := map[string]struct {
		manipulation string
		before, now  *unstructured.Unstructured
		gone, want   bool
	}{
		"SamePod":       {"pod-evict", object("Pod", "1", nil, nil), object("Pod", "1", nil, nil), false, false},
		"NewPod":        {"pod-evict", object("Pod", "1", nil, nil), object("Pod", "2", nil, nil), false, true},
		"PodOfNewName":  {"pod-delete-background", object("Pod", "1", nil, nil), nil, true, true},
		"Isolated":      {"pod-isolate", object("Pod", "1", nil, nil), object("Pod", "1", nil, nil), false, true},
		"Gone":          {"configmap-delete-background", object("ConfigMap", "1", label, full), nil, true, false},
		"MadeAgain":     {"configmap-delete-background", object("ConfigMap", "1", label, full), object("ConfigMap", "2", label, full), false, true},
		"Empty":         {"configmap-edit-empty", object("ConfigMap", "1", label, full), object("ConfigMap", "1", label, nil), false, false},
		"OthersAdded":   {"configmap-edit-empty", object("ConfigMap", "1", label, full), object("ConfigMap", "1", both, more), false, true},
		"WithoutLabels": {"configmap-strip-labels", object("ConfigMap", "1", label, full), object("ConfigMap", "1", nil, full), false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m, ok := experiment.Safe().Named(c.manipulation)
			if got := restored(m, c.before, c.now, c.gone); !ok || got != c.want {
				t.Errorf("restored is %v, want %v", got, c.want)
			}
		})
	}
	owned := object("ConfigMap", "1", label, full)
	owned.SetOwnerReferences([]metav1.OwnerReference{*controller("EtcdCluster", "e", "u")})
	if restored(chaos.Manipulation{}, owned, object("ConfigMap", "1", label, full), false) {
		t.Error("an object without its owner is not as before")
	}
}

// Volumes and members of the instance are compared before and after a manipulation.
func TestWhatMustSurvive(t *testing.T) {
	s, err := watched(t)
	if err != nil {
		t.Fatal(err)
	}
	state, err := s.Look(t.Context())
	if diff := cmp.Diff(map[string]string{"member e-0": "a1", "PersistentVolumeClaim c": "c1"}, state.Kept); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
