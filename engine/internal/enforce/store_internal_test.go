package enforce

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

var ringKind = schema.GroupKind{Group: "rings.example.com", Kind: "Ring"}

// rings is a fleet that records the objects that it is asked to reconcile.
type rings struct {
	names []string
	err   error
	woken []string
}

func (f *rings) Peers(context.Context) ([]policy.Peer, error) {
	var all []policy.Peer
	for _, name := range f.names {
		all = append(all, policy.Peer{Object: policy.Object{Group: ringKind.Group, Kind: ringKind.Kind, Namespace: "ns", Name: name, Labels: map[string]string{"name": name}}})
	}
	return all, f.err
}

func (f *rings) Wake(key types.NamespacedName)     { f.woken = append(f.woken, key.Name) }
func (f *rings) HolderName(o policy.Object) string { return "ring " + o.Namespace + "/" + o.Name }
func (f *rings) wakes(t *testing.T, names ...string) {
	t.Helper()
	slices.Sort(f.woken)
	if diff := cmp.Diff(names, f.woken); diff != "" {
		t.Errorf("objects that reconcile: %s", diff)
	}
	f.woken = nil
}

func newStore(f *rings) *Store {
	r := &Store{stirred: make(chan struct{}, 1)}
	r.Join(ringKind, f)
	<-r.stirred
	return r
}

// dirty reports whether the status of policies is to be computed, and takes the signal.
func (r *Store) dirty() bool {
	select {
	case <-r.stirred:
		return true
	default:
		return false
	}
}

func newPolicy(name string, generation int64, selects ...string) *v1alpha1.OperationPolicy {
	p := &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}}
	p.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: selects}}}
	return p
}

// A change of a policy reconciles the objects that it selects or selected, and no others.
func TestPolicyChangeWakesItsObjects(t *testing.T) {
	f := &rings{names: []string{"a", "b", "c"}}
	r := newStore(f)
	first, second := newPolicy("p", 1, "a"), newPolicy("p", 2, "b")

	r.policyChanged(nil, first)
	f.wakes(t, "a")
	if got := r.Selecting(policy.Object{Namespace: "ns", Labels: map[string]string{"name": "a"}}).Names(); !slices.Equal(got, []string{"p"}) {
		t.Errorf("the object is selected by %q", got)
	}
	r.policyChanged(first, newPolicy("p", 1, "a")) // its status was written
	f.wakes(t)
	r.policyChanged(first, second)
	f.wakes(t, "a", "b")
	r.policyChanged(second, nil)
	f.wakes(t, "b")
	if got := r.Selecting(policy.Object{Namespace: "ns", Labels: map[string]string{"name": "b"}}).Names(); len(got) > 0 {
		t.Errorf("after the deletion the object is selected by %q", got)
	}
}

// A fleet that cannot be listed hides no other fleet from a policy, and no peer from a wave.
func TestFleetThatCannotBeListed(t *testing.T) {
	f := &rings{names: []string{"a"}}
	r := newStore(f)
	leave := r.Join(schema.GroupKind{Kind: "Broken"}, &rings{err: errors.New("the cache has ended")})
	r.policyChanged(nil, newPolicy("p", 1, "a"))
	f.wakes(t, "a")
	if _, err := r.Peers(t.Context()); err == nil {
		t.Error("peers that cannot be listed count as none")
	}
	leave()
	if peers, err := r.Peers(t.Context()); err != nil || len(peers) != 1 {
		t.Errorf("after the application has left there are %v, %v", peers, err)
	}
}

// An approval reconciles the object that it names, when it comes and when it goes.
func TestApprovalWakesItsObject(t *testing.T) {
	f := &rings{names: []string{"a", "b"}}
	r := newStore(f)
	approve := func(kind string, generation int64) *v1alpha1.Approval {
		a := &v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ok", Generation: generation}}
		a.Spec.TargetRef = v1alpha1.ApprovedObject{Group: ringKind.Group, Kind: kind, Name: "a"}
		return a
	}
	r.approvalChanged(nil, approve("Ring", 1))
	f.wakes(t, "a")
	r.approvalChanged(approve("Ring", 1), approve("Ring", 1)) // its status was written
	f.wakes(t)
	r.approvalChanged(approve("Ring", 1), nil)
	f.wakes(t, "a")
	r.approvalChanged(nil, approve("Unknown", 1))
	f.wakes(t)
	if got := indexApproved(approve("Ring", 1)); !slices.Equal(got, []string{ApprovedObject(ringKind, "a")}) {
		t.Errorf("the approval is found by %q", got)
	}
}

// The status of policies is computed again when it can have changed, and only then.
func TestNoteMarksOnlyNews(t *testing.T) {
	r := newStore(&rings{})
	r.Note("ring ns/a", []string{"p"})
	if r.dirty() {
		t.Error("without policies nothing is to be computed")
	}
	r.policyChanged(nil, newPolicy("p", 1, "a"))
	r.dirty()
	for _, s := range []struct {
		holding []string
		dirty   bool
	}{{[]string{"p"}, true}, {[]string{"p"}, false}, {nil, true}, {nil, false}} {
		if r.Note("ring ns/a", s.holding); r.dirty() != s.dirty {
			t.Errorf("held by %q: the status is computed: %v", s.holding, !s.dirty)
		}
	}
	for name, forget := range map[string]func(){"Drop": func() { r.Drop("ring ns/a") }, "DropApp": func() { r.DropApp("ring") }} {
		r.Note("ring ns/a", []string{name})
		r.dirty()
		if forget(); !r.dirty() {
			t.Errorf("%s: the status still counts the object", name)
		}
		if _, known := r.holds("ring ns/a"); known {
			t.Errorf("%s: the object is still known", name)
		}
	}
}

// An object that waits for a wave reconciles when a wave changes, until it waits no more.
func TestWavesWakeThoseThatWait(t *testing.T) {
	r, woken := newStore(&rings{}), 0
	wake := func() { woken++ }
	wave := []lifecycle.Refusal{{Policy: "p", Gate: policy.GateCanary}}
	for _, s := range []struct {
		reason string
		do     func()
		want   int
	}{
		{"it waits", func() { r.WaitForWave("ring ns/a", wave, wake) }, 1},
		{"another policy holds it", func() {
			r.WaitForWave("ring ns/a", []lifecycle.Refusal{{Policy: "p", Gate: policy.GateApproval}}, wake)
		}, 0},
		{"it waits again", func() { r.WaitForWave("ring ns/a", wave, wake) }, 1},
		{"it is deleted", func() { r.Drop("ring ns/a") }, 0},
		{"its application stops", func() { r.WaitForWave("ring ns/a", wave, wake); r.DropApp("ring") }, 0},
	} {
		woken = 0
		s.do()
		if r.Broke(); woken != s.want {
			t.Errorf("%s: it reconciles %d times, want %d", s.reason, woken, s.want)
		}
	}
}

// A policy counts what it selects and holds. It is not reported before each of its objects was
// reconciled once.
func TestCount(t *testing.T) {
	f := &rings{names: []string{"a", "b"}}
	r := newStore(f)
	r.policyChanged(nil, newPolicy("both", 1, "a", "b"))
	r.policyChanged(nil, newPolicy("one", 1, "b"))
	r.Note("ring ns/b", []string{"both"})
	all, err := r.count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]policy.Usage{"both": {Selected: 2, Held: 1}, "one": {Selected: 1}}
	if diff := cmp.Diff(want, all.standings); diff != "" {
		t.Error(diff)
	}
	if _, counted := all.of("both"); counted {
		t.Error("an object was never reconciled, and the policy is reported")
	}
	if _, counted := all.of("one"); !counted {
		t.Error("all objects of the policy were reconciled, and it is not reported")
	}
	if p, _ := all.of("none"); p != nil {
		t.Error("a policy that does not exist is counted")
	}
	if !all.together[[2]string{"both", "one"}] || !slices.Equal(all.runs, []string{"Ring"}) {
		t.Errorf("together %v, runs %v", all.together, all.runs)
	}
}

// What policies say about each other is computed once for each pair.
func TestConflictsAreComputedOnce(t *testing.T) {
	f := &rings{names: []string{"a"}}
	r := newStore(f)
	strict, lax := newPolicy("strict", 1, "a"), newPolicy("lax", 1, "a")
	strict.Spec.DriftPolicy, lax.Spec.DriftPolicy = v1alpha1.DriftPolicyReport, v1alpha1.DriftPolicyRepair
	r.policyChanged(nil, client.Object(strict))
	r.policyChanged(nil, client.Object(lax))
	all, err := r.count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &policyStatusWriter{rules: r, asked: map[[2]*policy.Policy][]string{}}
	p, _ := all.of("strict")
	first := w.against(p, all)
	if len(first) != 1 {
		t.Fatalf("the policies differ in one field, and it says %q", first)
	}
	w.agreed = map[[2]*policy.Policy][]string{{p, all.set[0]}: {"remembered"}}
	if again := w.against(p, all); !slices.Equal(again, []string{"remembered"}) {
		t.Errorf("it is computed again: %q", again)
	}
}
