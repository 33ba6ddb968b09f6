package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// declared is a custom resource with a spec.
type declared struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		From string `json:"from,omitempty"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (d *declared) StatusFields() (*int64, *[]metav1.Condition) {
	return &d.Status.ObservedGeneration, &d.Status.Conditions
}

func (d *declared) DeepCopyObject() runtime.Object {
	out := *d
	return &out
}

// starter starts what was lost from the spec.
type starter struct {
	lifecycle.Planner[*declared, string]
}

func (starter) Effect(_ *declared, seen string, s lifecycle.Step) (during, after string) {
	return s.Name, seen
}

func (starter) Next(want *declared, _ string, _ time.Time) lifecycle.Decision {
	s := lifecycle.Step{Name: "Start", Target: "a-0", Class: lifecycle.ClassDisruptive, Intent: lifecycle.IntentRepair, Reason: "Lost", Args: map[string]string{"from": want.Spec.From}}
	switch want.Spec.From {
	case "elsewhere":
		s.Target = "a-1"
	case "waits":
		return lifecycle.WaitFor(lifecycle.Step{Name: "Started", Target: "a-0"}, time.Time{})
	case "changes":
		change := lifecycle.Step{Name: "Shrink", Target: "a-2", Intent: lifecycle.IntentChange}
		return lifecycle.First(lifecycle.Proceed(change), lifecycle.Proceed(s))
	}
	return lifecycle.Proceed(s)
}

// empty is a driver of an empty world.
type empty struct {
	lifecycle.Driver[*declared, string]
}

func (empty) Observe(context.Context, *declared) (string, error) { return "", nil }

func (empty) observe(*declared) (string, error) { return "", nil }

// takesSpec reports that every start gives its target the spec.
func takesSpec(*declared, string, lifecycle.Step) bool { return true }

// ruledStarter is an engine under the policy, and an object whose former spec has worked.
func ruledStarter(t *testing.T, worked string, rule v1alpha1.OperationPolicySpec) (*engine[*declared, string], *declared) {
	t.Helper()
	e := engineOf(time.Unix(1000, 0), fakeKind, App[*declared, string]{
		Planner: starter{}, Abilities: lifecycle.Abilities[*declared, string]{AppliesChange: takesSpec},
	})
	e.driver = empty{}
	all := policy.NewSet([]v1alpha1.OperationPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: rule}})
	e.operator.policies.All.Store(&all)
	obj := &declared{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u1", Generation: 1}}
	obj.Spec.From = worked
	if worked != "" {
		if _, err := e.revisions.Save(t.Context(), obj, "ann", true); err != nil {
			t.Fatal(err)
		}
	}
	obj.Spec.From, obj.Generation = "new", 2
	return e, obj
}

// A repair uses the spec that worked last while a policy holds the present one, if that spec needs the same repair.
func TestRepairUsesTheSpecThatWorkedLast(t *testing.T) {
	freeze := v1alpha1.OperationPolicySpec{Freeze: &v1alpha1.Freeze{Reason: "sale"}}
	cases := map[string]struct {
		reason string
		worked string // the spec of generation 1, which settled; empty if there was none
		policy v1alpha1.OperationPolicySpec
		want   string
	}{
		"Held":      {"the change is held", "old", freeze, "old"},
		"Open":      {"no policy holds the change", "old", v1alpha1.OperationPolicySpec{}, "new"},
		"First":     {"a new object has no other spec", "", freeze, "new"},
		"Unchanged": {"the present spec has worked", "new", freeze, "new"},
		"Another":   {"the spec that worked needs another repair, which goes on instead", "elsewhere", freeze, "elsewhere"},
		"Behind":    {"the spec that worked needs it after a change", "changes", freeze, "changes"},
		"None":      {"the spec that worked needs no repair: the change is held, and not carried out as one", "waits", freeze, ""},
		"Strict":    {"the policy holds repairs, too", "elsewhere", v1alpha1.OperationPolicySpec{Freeze: freeze.Freeze, RepairPolicy: v1alpha1.RepairPolicyHold}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e, obj := ruledStarter(t, c.worked, c.policy)
			r := newReconciliation[*declared, string](obj, "ann", time.Unix(1000, 0))
			r.Decision = starter{}.Next(r.obj, "", time.Time{})
			e.gate(t.Context(), r)
			if r.Decision.Outcome != lifecycle.OutcomeProceed {
				if c.want != "" || len(r.Refusals) == 0 {
					t.Errorf("%s: %s", c.reason, r.Decision)
				}
				return
			}
			if got := r.Decision.Step.Args["from"]; got != c.want || r.actFor.Spec.From != c.want {
				t.Errorf("%s: %s from %q for %q, want %q", c.reason, r.Decision, got, r.actFor.Spec.From, c.want)
			}
			if r.obj.Spec.From != "new" {
				t.Errorf("the object itself has the spec %q", r.obj.Spec.From)
			}
		})
	}
}

// Policies that hold irreversible steps only hold a repair that carries out an irreversible change.
func TestRepairCarriesOutNoIrreversibleChange(t *testing.T) {
	rule := v1alpha1.OperationPolicySpec{Approval: &v1alpha1.ApprovalRule{Classes: []v1alpha1.StepClass{"Irreversible"}}}
	for class, held := range map[lifecycle.Class]bool{lifecycle.ClassDisruptive: false, lifecycle.ClassIrreversible: true} {
		e, obj := ruledStarter(t, "waits", rule)
		step := starter{}.Next(obj, "", time.Time{}).Step
		step.Class = class
		use, err := e.judge.WithoutHeldChange(t.Context(), hold.StandIn[*declared, string]{Step: step, Want: obj}, false, empty{}.observe)
		if err != nil || (len(use.Refusals) > 0) != held {
			t.Errorf("%s: %v %v", class, use.Refusals, err)
		}
	}
}

// frozenEtcd is an engine under a freeze, and an EtcdCluster of three members whose spec has worked and that another one replaces.
func frozenEtcd(t *testing.T, worked, now etcdv1.EtcdClusterSpec) (*engine[*etcdv1.EtcdCluster, etcd.World], *etcdv1.EtcdCluster) {
	t.Helper()
	kind := etcdv1.GroupVersion.WithKind("EtcdCluster")
	e := engineOf(time.Unix(1000, 0), kind, App[*etcdv1.EtcdCluster, etcd.World]{
		Name: etcd.Name, Planner: etcd.Planner{}, Gates: etcd.Gates(), Abilities: etcd.Abilities(),
	})
	all := policy.NewSet([]v1alpha1.OperationPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "sale"}, Spec: v1alpha1.OperationPolicySpec{Freeze: &v1alpha1.Freeze{Reason: "sale"}},
	}})
	e.operator.policies.All.Store(&all)
	obj := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: "u1", Generation: 1}, Spec: worked}
	obj.TypeMeta = metav1.TypeMeta{APIVersion: etcdv1.GroupVersion.String(), Kind: "EtcdCluster"}
	obj.Spec.Size, now.Size = 3, 3
	etcd.Planner{}.Status(obj, etcd.World{})
	if _, err := e.revisions.Save(t.Context(), obj, "ann", true); err != nil {
		t.Fatal(err)
	}
	obj.Spec, obj.Generation = now, 2
	return e, obj
}

// servingEtcd is the world in which the members serve, with templates of that revision.
func servingEtcd(obj *etcdv1.EtcdCluster, revision string, names ...string) etcd.World {
	seen := etcd.World{Listed: true, ClusterID: 1}
	for i, name := range names {
		seen.Members = append(seen.Members, etcd.Member{
			Name: name, ID: uint64(i + 1), PeerURL: etcd.PeerURL(obj, name), Role: etcd.Voter, Joined: true, Health: etcd.Healthy, Leads: i == 0,
			Version: etcd.Newest, Index: 9, Set: etcd.Set{Exists: true, Version: etcd.Newest, Revision: revision, Exposure: etcd.Exposed},
			Pod:    etcd.Pod{Exists: true, Ready: true, Version: etcd.Newest, Revision: revision, Exposure: etcd.Exposed, Node: "n"},
			Volume: etcd.Volume{Exists: true},
		})
	}
	return seen
}

// etcdWorlds is a driver that observes the world which the function returns for the spec.
type etcdWorlds struct {
	lifecycle.Driver[*etcdv1.EtcdCluster, etcd.World]
	of func(want *etcdv1.EtcdCluster) (etcd.World, error)
}

func (d etcdWorlds) Observe(_ context.Context, want *etcdv1.EtcdCluster) (etcd.World, error) {
	return d.of(want)
}

// judged is the reconcile up to the step that the engine takes.
func judged(
	t *testing.T, e *engine[*etcdv1.EtcdCluster, etcd.World], obj *etcdv1.EtcdCluster, seen etcd.World,
) *reconciliation[*etcdv1.EtcdCluster, etcd.World] {
	t.Helper()
	r := newReconciliation[*etcdv1.EtcdCluster, etcd.World](obj, "ann", e.now())
	if e.driver == nil {
		e.driver = etcdWorlds{of: func(*etcdv1.EtcdCluster) (etcd.World, error) { return seen, nil }}
	}
	r.seen, r.Decision = seen, etcd.Planner{}.Next(r.obj, seen, e.now())
	e.gate(t.Context(), r)
	return r
}

// retentionChanges is an engine that holds a change of the version, and of the retention from Delete to Retain.
func retentionChanges(t *testing.T) (*engine[*etcdv1.EtcdCluster, etcd.World], *etcdv1.EtcdCluster) {
	t.Helper()
	var worked, now etcdv1.EtcdClusterSpec
	worked.TLS.Mode, worked.Version, worked.Storage.Retention = etcdv1.TLSModeDisabled, "3.6.16", etcdv1.RetentionDelete
	now.TLS.Mode, now.Version, now.Storage.Retention = etcdv1.TLSModeDisabled, etcd.Newest, etcdv1.RetentionRetain
	return frozenEtcd(t, worked, now)
}

// No policy holds what protects the data: the step that makes volumes stay must not become the step of the earlier spec
// that has Kubernetes delete them.
func TestHeldChangeDoesNotTurnRetentionAround(t *testing.T) {
	e, obj := retentionChanges(t)
	seen := servingEtcd(obj, "", "e-0", "e-1", "e-3")
	seen.Members[2].Volume.Owned = true // the other volumes stay already
	r := judged(t, e, obj, seen)
	if step := r.Decision.Step; r.Decision.Outcome != lifecycle.OutcomeProceed || step.Name != etcd.SetRetention || step.Args[etcd.ArgRetention] != string(etcdv1.RetentionRetain) {
		t.Errorf("spec.storage.retention is Retain, and the engine decides %s %v", r.Decision, step.Args)
	}
}

// A member whose StatefulSet a user broke is put right, also while a change is held and its template can be compared with
// the spec that worked last only: its data must not go because it has not answered for spec.replaceAfter.
func TestBrokenSetIsRestoredWhileAChangeIsHeld(t *testing.T) {
	var worked, now etcdv1.EtcdClusterSpec
	worked.TLS.Mode, now.TLS.Mode, now.Options.SnapshotCount = etcdv1.TLSModeDisabled, etcdv1.TLSModeDisabled, 7
	e, obj := frozenEtcd(t, worked, now)
	broken := func(edited string) etcd.World {
		seen := servingEtcd(obj, "r", "e-0", "e-1", "e-2")
		m := &seen.Members[1]
		m.Health, m.Bootstrap, m.Since, m.Set.Edited = etcd.Unknown, etcd.BootstrapDisabled, time.Unix(1, 0), edited
		m.Pod.Ready, m.Pod.Since = false, time.Unix(1, 0)
		return seen
	}
	e.driver = etcdWorlds{of: func(want *etcdv1.EtcdCluster) (etcd.World, error) {
		if want.Spec.Options.SnapshotCount == 0 {
			return broken("spec.template"), nil
		}
		return broken(""), nil
	}}
	if d := (etcd.Planner{}).Next(obj, broken(""), e.now()); d.Step.Name != etcd.RemoveMember || d.Step.Class != lifecycle.ClassDestructive {
		t.Fatalf("the present spec decides %s, so this test proves nothing", d)
	}
	if r := judged(t, e, obj, broken("")); r.Decision.Step.Name != etcd.RestoreStatefulSet || r.Decision.Step.Target != "e-1" {
		t.Errorf("the engine decides %s", r.Decision)
	}
}

// A volume that a repair creates while the change is held stays, too.
func TestHeldChangeCreatesNoVolumeThatGoes(t *testing.T) {
	e, obj := retentionChanges(t)
	seen := servingEtcd(obj, "", "e-0", "e-1", "e-2")
	seen.Members[2] = etcd.Member{Name: "e-2", ID: 3, Role: etcd.Learner, PeerURL: etcd.PeerURL(obj, "e-2"), Bootstrap: etcd.BootstrapJoin}
	r := judged(t, e, obj, seen)
	step := r.Decision.Step
	if step.Name != etcd.StartMember || step.Args[etcd.ArgVersion] != "3.6.16" || r.actFor.Spec.Version != "3.6.16" {
		t.Fatalf("%s %v for version %s", r.Decision, step.Args, r.actFor.Spec.Version)
	}
	if step.Args[etcd.ArgRetention] != "" || !etcd.Retains(r.actFor) {
		t.Errorf("spec.storage.retention is Retain, and the new volume has the retention %q, for a spec with %s", step.Args[etcd.ArgRetention], r.actFor.Spec.Storage.Retention)
	}
}

// secretsChange is an engine that holds a change of spec.tls.secrets, to Secrets that the members do not accept, the world in
// which the members serve with the former ones, and that which Governor sees with the new ones.
func secretsChange(t *testing.T) (e *engine[*etcdv1.EtcdCluster, etcd.World], obj *etcdv1.EtcdCluster, former, seen etcd.World) {
	t.Helper()
	worked := etcdv1.EtcdClusterSpec{Version: etcd.Newest}
	worked.TLS = etcdv1.TLSSpec{Mode: etcdv1.TLSModeSecrets, Secrets: &etcdv1.TLSSecrets{Server: "server-a", Client: "client-a"}}
	now := *worked.DeepCopy()
	now.TLS.Secrets = &etcdv1.TLSSecrets{Server: "server-b", Client: "client-b"}
	e, obj = frozenEtcd(t, worked, now)
	before := obj.DeepCopy()
	before.Spec.TLS = worked.TLS
	former = servingEtcd(obj, etcd.Revision(before)+".a", "e-0", "e-1", "e-2")
	former.Trust = "a"
	etcd.Planner{}.Status(obj, former)
	seen = etcd.World{Trust: "b"}
	for _, m := range former.Members {
		m.ID, m.Role, m.Joined, m.PeerURL, m.Leads, m.Health, m.Version, m.Index, m.Refused = 0, etcd.Outside, false, "", false, etcd.Unknown, "", 0, true
		seen.Members = append(seen.Members, m)
	}
	return e, obj, former, seen
}

// A held change of spec.tls.secrets restarts no member, whether the former Secrets exist or not: what the new Secrets show is not
// the world of the spec that acts. After the freeze the members get the new Secrets.
func TestHeldSecretsRestartNothing(t *testing.T) {
	e, obj, former, seen := secretsChange(t)
	for name, world := range map[string]etcd.World{"Served": former, "Deleted": {Certificates: "the Secret server-a does not exist", Members: seen.Members}} {
		e.driver = etcdWorlds{of: func(want *etcdv1.EtcdCluster) (etcd.World, error) {
			if want.Spec.TLS.Secrets.Server == "server-a" {
				return world, nil
			}
			return seen, nil
		}}
		if r := judged(t, e, obj, seen); !r.Decision.IsHeld() {
			t.Errorf("%s: %s, for the Secrets of %s", name, r.Decision, r.actFor.Spec.TLS.Secrets.Server)
		}
	}
	var none policy.Set
	e.operator.policies.All.Store(&none)
	if r := judged(t, e, obj, seen); r.Decision.Step.Name != etcd.Restart || r.Decision.Outcome != lifecycle.OutcomeProceed || r.actFor.Spec.TLS.Secrets.Server != "server-b" {
		t.Errorf("the freeze is over: %s", r.Decision)
	}
}

// While the former Secrets exist, a repair goes on with them, in the world that they show. Without that world no repair is made.
func TestHeldSecretsHoldNoRepair(t *testing.T) {
	e, obj, former, seen := secretsChange(t)
	former.Members[2].Pod, former.Members[2].Set = etcd.Pod{}, etcd.Set{}
	former.Members[2].Health, former.Members[2].Version = etcd.Unknown, ""
	e.driver = etcdWorlds{of: func(*etcdv1.EtcdCluster) (etcd.World, error) { return former, nil }}
	r := judged(t, e, obj, seen)
	if s := r.Decision.Step; r.Decision.Outcome != lifecycle.OutcomeProceed || s.String() != "StartMember e-2" || r.actFor.Spec.TLS.Secrets.Server != "server-a" || !r.decidedIn().Listed {
		t.Errorf("%s, for the Secrets of %s", r.Decision, r.actFor.Spec.TLS.Secrets.Server)
	}
	e.driver = etcdWorlds{of: func(*etcdv1.EtcdCluster) (etcd.World, error) { return etcd.World{}, errors.New("away") }}
	if r := judged(t, e, obj, seen); r.Decision.Outcome != lifecycle.OutcomeRetry || r.Cause == nil {
		t.Errorf("the world is not known: %s", r.Decision)
	}
}
