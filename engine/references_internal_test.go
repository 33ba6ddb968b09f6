package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/governor-dev/governor/lifecycle"
)

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

func secretRef(name string) lifecycle.Reference {
	return lifecycle.Reference{Kind: secretKind, Namespace: "n", Name: name}
}

func named(name string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: name} }

// A change of an object reconciles those that refer to it now, and no others.
func TestReferencesFindTheirUsers(t *testing.T) {
	r, watched := newReferences(), []string{}
	r.watch = func(kind schema.GroupVersionKind) error { watched = append(watched, kind.Kind); return nil }
	set := func(name string, secrets ...string) {
		t.Helper()
		var all []lifecycle.Reference
		for _, s := range secrets {
			all = append(all, secretRef(s))
		}
		if err := r.set(named(name), all); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(secret string, want ...string) {
		t.Helper()
		var got []string
		for _, key := range r.usersOf(secretRef(secret)) {
			got = append(got, key.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s is used by %v, want %v", secret, got, want)
		}
	}
	set("none")
	if len(watched) != 0 {
		t.Errorf("without a reference, %v are watched", watched)
	}
	set("a", "shared", "own")
	set("b", "shared", "shared")
	expect("shared", "a", "b")
	expect("own", "a")
	set("a", "other")
	expect("shared", "b")
	expect("own")
	expect("other", "a")
	set("a")
	set("b")
	if len(r.users) != 0 || len(r.of) != 0 {
		t.Errorf("%v and %v are left of objects that are gone", r.users, r.of)
	}
	if diff := cmp.Diff([]string{"Secret"}, watched); diff != "" {
		t.Error("each kind is watched once", diff)
	}
}

// A kind that cannot be watched is tried again with the next reconcile.
func TestFailedWatchOfReferencesIsRetried(t *testing.T) {
	r, broken := newReferences(), errors.New("broken")
	r.watch = func(schema.GroupVersionKind) error { return broken }
	if err := r.set(named("a"), []lifecycle.Reference{secretRef("s")}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	r.watch = func(schema.GroupVersionKind) error { return nil }
	if err := r.set(named("a"), []lifecycle.Reference{secretRef("s")}); err != nil || !r.watched[secretKind] {
		t.Errorf("watched: %v, %v", r.watched, err)
	}
}

func TestEventsOfReferencesWakeTheirUsers(t *testing.T) {
	r := newReferences()
	r.watch = func(schema.GroupVersionKind) error { return nil }
	if err := r.set(named("a"), []lifecycle.Reference{secretRef("s")}); err != nil {
		t.Fatal(err)
	}
	secret := func(name, version string) client.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: version}}
	}
	h := r.handler(secretKind)
	for name, c := range map[string]struct {
		happens func(q queue)
		wakes   int
	}{
		"Created": {func(q queue) { h.Create(t.Context(), event.CreateEvent{Object: secret("s", "1")}, q) }, 1},
		"Changed": {func(q queue) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: secret("s", "1"), ObjectNew: secret("s", "2")}, q)
		}, 1},
		"Resynced": {func(q queue) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: secret("s", "1"), ObjectNew: secret("s", "1")}, q)
		}, 0},
		"Deleted": {func(q queue) { h.Delete(context.Background(), event.DeleteEvent{Object: secret("s", "1")}, q) }, 1},
		"Another": {func(q queue) { h.Create(t.Context(), event.CreateEvent{Object: secret("x", "1")}, q) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			if c.happens(q); q.Len() != c.wakes {
				t.Errorf("%d objects are reconciled, want %d", q.Len(), c.wakes)
			}
		})
	}
}
