package engine

import (
	"context"
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

// storeOf returns a history store, and how many writes its API server has seen. refuse is what
// the API server answers to the creation of an object; nil if it creates it.
func storeOf(refuse error) (*historyStore, *int) {
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
	return &historyStore{app: "app", client: c, live: c, version: "v1"}, writes
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
	d, writes := storeOf(nil)
	waited := []history.WaitRecord{{Step: lifecycle.Step{Name: "Serving", Target: "a-0"}}}
	for _, s := range []struct {
		reason string
		waited []history.WaitRecord
		entry  *history.Entry
		writes int
	}{
		{"nothing happened", nil, nil, 0},
		{"a gate refuses a step", nil, restarted(history.Refused), 1},
		{"the gate refuses it again", nil, restarted(history.Refused), 0},
		{"the step is taken", nil, restarted(history.Succeeded), 1},
		{"it was waited for", waited, nil, 1},
	} {
		*writes = 0
		if err := d.record(t.Context(), historyOwner(), s.waited, s.entry); err != nil {
			t.Fatal(err)
		}
		if *writes != s.writes {
			t.Errorf("%s: %d writes, want %d", s.reason, *writes, s.writes)
		}
	}
	cm, log, err := d.open(t.Context(), historyOwner())
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
	d, _ := storeOf(nil)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: history.Name("Service", "a")}, Data: map[string]string{history.Key: "{"}}
	if err := d.client.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if err := d.record(t.Context(), historyOwner(), nil, restarted(history.Succeeded)); err != nil {
		t.Fatal(err)
	}
	if _, log, err := d.open(t.Context(), historyOwner()); err != nil || len(log.Entries) != 1 {
		t.Errorf("the history is %+v, %v", log, err)
	}
}

// A namespace that is being deleted keeps no history; every other refusal is an error.
func TestHistoryStoreInTerminatingNamespace(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("configmaps"), "a", nil)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for refuse, fails := range map[error]bool{terminating: false, apierrors.NewForbidden(corev1.Resource("configmaps"), "a", nil): true} {
		d, _ := storeOf(refuse)
		if err := d.record(t.Context(), historyOwner(), nil, restarted(history.Succeeded)); (err != nil) != fails {
			t.Errorf("refused with %v: %v", refuse, err)
		}
	}
}
