package historystore

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// testStore returns a history store, and how many writes its API server has seen. refuse is what
// the API server answers to the creation of an object; nil if it creates it.
func testStore(refuse error) (*Store, *int) {
	writes := new(int)
	c := interceptor.NewClient(fakeclient.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			if *writes++; refuse != nil {
				return refuse
			}
			return w.Create(ctx, obj, o...)
		},
		Update: func(ctx context.Context, w client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			*writes++
			return w.Update(ctx, obj, o...)
		},
	})
	return New("app", "v1", c, c), writes
}

// A Service stands for the custom resource.
func historyOwner() client.Object {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u1"}}
}

func restarted(result history.Result) *history.Entry {
	return &history.Entry{At: time.Unix(1000, 0), Step: lifecycle.Step{Name: "Restart", Target: "a-0"}, Result: result, Message: "why"}
}

// One write per step; none for what the history says already, and none for nothing.
func TestHistoryStoreWritesOncePerStep(t *testing.T) {
	d, writes := testStore(nil)
	waited := []history.WaitRecord{{Step: lifecycle.Step{Name: "Serving", Target: "a-0"}}}
	for _, s := range []struct {
		reason string
		waited []history.WaitRecord
		entry  *history.Entry
		writes int
	}{
		{"nothing happened", nil, nil, 0},
		{"a gate refuses a step", nil, restarted(history.ResultRefused), 1},
		{"the gate refuses it again", nil, restarted(history.ResultRefused), 0},
		{"the step is taken", nil, restarted(history.ResultSucceeded), 1},
		{"it was waited for", waited, nil, 1},
	} {
		*writes = 0
		if err := d.Record(t.Context(), historyOwner(), s.waited, s.entry); err != nil {
			t.Fatal(err)
		}
		if *writes != s.writes {
			t.Errorf("%s: %d writes, want %d", s.reason, *writes, s.writes)
		}
	}
	cm, log, err := d.Open(t.Context(), historyOwner())
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Entries) != 2 || log.Entries[1].Operator != "v1" || log.Verify() != nil {
		t.Errorf("the history is %+v, %v", log, log.Verify())
	}
	if !metav1.IsControlledBy(cm, historyOwner()) {
		t.Error("the history would stay when its object is deleted")
	}
}

// A history that cannot be read begins again: it must not stop repairs.
func TestHistoryStoreReplacesUnreadableHistory(t *testing.T) {
	d, _ := testStore(nil)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: history.Name("Service", "a")}, Data: map[string]string{history.Key: "{"}}
	if err := d.client.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if err := d.Record(t.Context(), historyOwner(), nil, restarted(history.ResultSucceeded)); err != nil {
		t.Fatal(err)
	}
	if _, log, err := d.Open(t.Context(), historyOwner()); err != nil || len(log.Entries) != 1 {
		t.Errorf("the history is %+v, %v", log, err)
	}
}

// A user who makes the history immutable does not end it.
func TestHistoryStoreReplacesImmutableHistory(t *testing.T) {
	d, _ := testStore(nil)
	for range 2 {
		if err := d.Record(t.Context(), historyOwner(), nil, restarted(history.ResultSucceeded)); err != nil {
			t.Fatal(err)
		}
		cm, log, err := d.Open(t.Context(), historyOwner())
		if err != nil || cm.Immutable != nil || len(log.Entries) == 0 || log.Verify() != nil || !metav1.IsControlledBy(cm, historyOwner()) {
			t.Fatalf("the history is %+v, %v", cm, err)
		}
		cm.Immutable = new(true)
		if err := d.client.Update(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
}

// A finalizer keeps an immutable history: nothing is recorded then, and the object is still reconciled. What is not the
// operator's stays.
func TestHistoryStoreDoesNotStopForAnImmutableHistory(t *testing.T) {
	d, _ := testStore(nil)
	edit := func(edit func(*corev1.ConfigMap)) {
		t.Helper()
		cm, _, err := d.Open(t.Context(), historyOwner())
		if err != nil {
			t.Fatal(err)
		}
		edit(cm)
		if err := d.client.Update(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
	record := func() error {
		return d.Record(t.Context(), historyOwner(), nil, restarted(history.ResultSucceeded))
	}
	if err := record(); err != nil {
		t.Fatal(err)
	}
	edit(func(cm *corev1.ConfigMap) { cm.Immutable, cm.Finalizers = new(true), []string{"example.com/keep"} })
	for range 2 {
		if err := record(); err != nil {
			t.Errorf("while a finalizer keeps it: %v", err)
		}
	}
	edit(func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
	if err := record(); err != nil {
		t.Fatal(err)
	}
	edit(func(cm *corev1.ConfigMap) { cm.Immutable, cm.Labels = new(true), nil })
	if err := record(); err == nil || !strings.Contains(err.Error(), "not the operator's") {
		t.Errorf("what another created: %v", err)
	}
}

// With its owner reference removed, the history would outlive its object.
func TestHistoryStoreRestoresTheOwner(t *testing.T) {
	d, _ := testStore(nil)
	for range 2 {
		if err := d.Record(t.Context(), historyOwner(), nil, restarted(history.ResultSucceeded)); err != nil {
			t.Fatal(err)
		}
		cm := &corev1.ConfigMap{}
		known, _, err := d.Open(t.Context(), historyOwner())
		if err == nil {
			err = d.client.Get(t.Context(), client.ObjectKeyFromObject(known), cm)
		}
		if err != nil || !metav1.IsControlledBy(cm, historyOwner()) {
			t.Fatalf("it belongs to %v, %v", cm.OwnerReferences, err)
		}
		cm.OwnerReferences = nil
		if err := d.client.Update(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
}

// A namespace that is being deleted keeps no history; every other refusal is an error.
func TestHistoryStoreInTerminatingNamespace(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("configmaps"), "a", nil)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for refuse, fails := range map[error]bool{terminating: false, apierrors.NewForbidden(corev1.Resource("configmaps"), "a", nil): true} {
		d, _ := testStore(refuse)
		if err := d.Record(t.Context(), historyOwner(), nil, restarted(history.ResultSucceeded)); (err != nil) != fails {
			t.Errorf("refused with %v: %v", refuse, err)
		}
	}
}

// The cause of what is under way is that of the last step that was taken: a refused one began nothing.
func TestLastCause(t *testing.T) {
	d, _ := testStore(nil)
	if got := d.LastCause(t.Context(), historyOwner()); got != "" {
		t.Errorf("without a history it is %q", got)
	}
	taken, refused := restarted(history.ResultSucceeded), restarted(history.ResultRefused)
	taken.Step.Cause, refused.Step.Cause = lifecycle.CauseFault, lifecycle.CauseSpecChange
	for _, e := range []*history.Entry{taken, refused} {
		if err := d.Record(t.Context(), historyOwner(), nil, e); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.LastCause(t.Context(), historyOwner()); got != lifecycle.CauseFault {
		t.Errorf("it is %q", got)
	}
}
