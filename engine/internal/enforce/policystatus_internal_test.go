package enforce

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// cluster is an API server with policies. It implements Objects and manager.Manager.
type cluster struct {
	manager.Manager
	client.Client
	refuse, unreadable error
	writes             int
}

func (c *cluster) GetClient() client.Client { return c.Client }
func (c *cluster) GetLogger() logr.Logger   { return logr.Discard() }
func (c *cluster) Await(context.Context)    {}

func (c *cluster) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	if c.unreadable != nil {
		return c.unreadable
	}
	return c.Client.List(ctx, into, o...)
}

// newWriter is the writer of the status of the policies, which all are known.
func newWriter(t *testing.T, f *rings, all ...*v1alpha1.OperationPolicy) (*policyStatusWriter, *cluster) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, r := &cluster{}, newStore(f)
	build := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.OperationPolicy{})
	for _, p := range all {
		build.WithObjects(p)
		r.policyChanged(nil, p)
	}
	c.Client = build.WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, to client.Client, sub string, obj client.Object, o ...client.SubResourceUpdateOption) error {
			if c.writes++; c.refuse != nil {
				return c.refuse
			}
			return to.SubResource(sub).Update(ctx, obj, o...)
		},
	}).Build()
	r.policies = c
	for _, name := range f.names {
		r.Note("ring ns/"+name, nil)
	}
	r.dirty()
	return &policyStatusWriter{mgr: c, rules: r, now: func() time.Time { return noon }}, c
}

func (c *cluster) status(t *testing.T, name string) v1alpha1.OperationPolicyStatus {
	t.Helper()
	p := &v1alpha1.OperationPolicy{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		t.Fatal(err)
	}
	return p.Status
}

// The status counts the objects that a policy selects and holds, and says when its window opens. At
// rest nothing is written.
func TestPolicyStatusIsWritten(t *testing.T) {
	p := newPolicy("p", 3, "a", "b")
	p.Spec.Windows = []v1alpha1.Window{{Schedule: "0 14 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
	w, c := newWriter(t, &rings{names: []string{"a", "b", "c"}}, p)
	w.rules.Note("ring ns/a", []string{"p"})
	due := w.write(t.Context())
	s := c.status(t, "p")
	got := []any{s.ObservedGeneration, s.Selected, s.Held, s.NextWindow}
	if diff := cmp.Diff([]any{int64(3), int32(2), int32(1), "2026-01-01T14:00:00Z"}, got); diff != "" || !due.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("it is written again at %s; %s", due, diff)
	}
	if len(s.Conditions) == 0 {
		t.Error("it has no conditions")
	}
	if w.write(t.Context()); c.writes != 1 {
		t.Errorf("%d writes, want one", c.writes)
	}
	w.rules.Note("ring ns/a", nil)
	if w.write(t.Context()); c.writes != 2 || c.status(t, "p").Held != 0 {
		t.Errorf("%d writes, and it holds %d", c.writes, c.status(t, "p").Held)
	}
}

// Nothing is written before each selected object was reconciled once: it may be held.
func TestPolicyStatusWaitsForAllObjects(t *testing.T) {
	f := &rings{names: []string{"a"}}
	w, c := newWriter(t, f, newPolicy("p", 1, "a", "b"))
	f.names = append(f.names, "b")
	if w.write(t.Context()); c.writes > 0 {
		t.Error("b was not reconciled yet, and may be held")
	}
	w.rules.Note("ring ns/b", []string{"p"})
	if w.write(t.Context()); c.status(t, "p").Selected != 2 || c.status(t, "p").Held != 1 {
		t.Errorf("the status is %+v", c.status(t, "p"))
	}
}

// A write that fails is tried again, unless the policy is gone.
func TestPolicyStatusThatCannotBeWritten(t *testing.T) {
	policies := schema.GroupResource{Resource: "operationpolicies"}
	for name, c := range map[string]struct {
		err   error
		again bool
	}{
		"Conflict": {apierrors.NewConflict(policies, "p", errors.New("changed")), true},
		"Away":     {errors.New("connection refused"), true},
		"Gone":     {apierrors.NewNotFound(policies, "p"), false},
	} {
		w, server := newWriter(t, &rings{names: []string{"a"}}, newPolicy("p", 1, "a"))
		server.refuse = c.err
		if w.write(t.Context()); w.rules.dirty() != c.again {
			t.Errorf("%s: it is tried again: %t", name, !c.again)
		}
	}
}

// What cannot be read is read again soon.
func TestPolicyStatusOfObjectsThatCannotBeRead(t *testing.T) {
	f := &rings{names: []string{"a"}}
	w, c := newWriter(t, f, newPolicy("p", 1, "a"))
	f.err = errors.New("the cache has ended")
	if due := w.write(t.Context()); c.writes > 0 || !due.Equal(noon.Add(retryAfter)) {
		t.Errorf("%d writes, and again at %s", c.writes, due)
	}
	f.err, c.unreadable = nil, errors.New("the cache has ended")
	if due := w.write(t.Context()); c.writes > 0 || !due.IsZero() {
		t.Errorf("without policies: %d writes, and again at %s", c.writes, due)
	}
}

// Policies that contradict each other about the same object say so.
func TestPolicyStatusNamesContradictions(t *testing.T) {
	report, repair := newPolicy("report", 1, "a"), newPolicy("repair", 1, "a")
	report.Spec.DriftPolicy, repair.Spec.DriftPolicy = v1alpha1.DriftPolicyReport, v1alpha1.DriftPolicyRepair
	elsewhere := newPolicy("elsewhere", 1, "b")
	elsewhere.Spec.DriftPolicy = v1alpha1.DriftPolicyRepair
	w, c := newWriter(t, &rings{names: []string{"a", "b"}}, report, repair, elsewhere)
	w.write(t.Context())
	for name, want := range map[string]bool{"report": true, "repair": true, "elsewhere": false} {
		if got := apimeta.IsStatusConditionTrue(c.status(t, name).Conditions, "Conflicting"); got != want {
			t.Errorf("%s: %+v", name, c.status(t, name).Conditions)
		}
	}
}
