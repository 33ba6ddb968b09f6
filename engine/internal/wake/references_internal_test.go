package wake

import (
	"context"
	"errors"
	"slices"
	"strings"
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

func labeled(name string, of map[string]string) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: of}}
}

// A change of an object reconciles those that refer to it now, and no others.
func TestReferencesFindTheirUsers(t *testing.T) {
	r, watched := NewReferences(), []string{}
	r.Watch = func(kind schema.GroupVersionKind) error { watched = append(watched, kind.Kind); return nil }
	set := func(name string, secrets ...string) {
		t.Helper()
		var all []lifecycle.Reference
		for _, s := range secrets {
			all = append(all, secretRef(s))
		}
		if err := r.Set(named(name), all); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(secret string, want ...string) {
		t.Helper()
		var got []string
		for _, key := range r.usersOf(secretKind, labeled(secret, nil)) {
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
	if len(r.users) != 0 || len(r.of) != 0 || len(r.selecting) != 0 {
		t.Errorf("%v and %v are left of objects that are gone", r.users, r.of)
	}
	if diff := cmp.Diff([]string{"Secret"}, watched); diff != "" {
		t.Error("each kind is watched once", diff)
	}
}

// A kind that cannot be watched is tried again with the next reconcile.
func TestFailedWatchOfReferencesIsRetried(t *testing.T) {
	r, broken := NewReferences(), errors.New("broken")
	r.Watch = func(schema.GroupVersionKind) error { return broken }
	if err := r.Set(named("a"), []lifecycle.Reference{secretRef("s")}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	r.Watch = func(schema.GroupVersionKind) error { return nil }
	if err := r.Set(named("a"), []lifecycle.Reference{secretRef("s")}); err != nil || !r.watched[secretKind] {
		t.Errorf("watched: %v, %v", r.watched, err)
	}
}

func TestEventsOfReferencesWakeTheirUsers(t *testing.T) {
	r := NewReferences()
	r.Watch = func(schema.GroupVersionKind) error { return nil }
	if err := r.Set(named("a"), []lifecycle.Reference{secretRef("s")}); err != nil {
		t.Fatal(err)
	}
	secret := func(name, version string) client.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: version}}
	}
	h := r.Handler(secretKind)
	for name, c := range map[string]struct {
		happens func(q Queue)
		wakes   int
	}{
		"Created": {func(q Queue) { h.Create(t.Context(), event.CreateEvent{Object: secret("s", "1")}, q) }, 1},
		"Changed": {func(q Queue) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: secret("s", "1"), ObjectNew: secret("s", "2")}, q)
		}, 1},
		"Resynced": {func(q Queue) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: secret("s", "1"), ObjectNew: secret("s", "1")}, q)
		}, 0},
		"Deleted": {func(q Queue) { h.Delete(context.Background(), event.DeleteEvent{Object: secret("s", "1")}, q) }, 1},
		"Another": {func(q Queue) { h.Create(t.Context(), event.CreateEvent{Object: secret("x", "1")}, q) }, 0},
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

var monitorKind = schema.GroupVersionKind{Group: "monitoring.example.com", Version: "v1", Kind: "Monitor"}

func selecting(of map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: of}
}

// A custom resource that selects objects by label hears of those that begin to match, match, and
// cease to match, in the namespaces that it selects.
func TestSelectedObjectsWakeTheirUsers(t *testing.T) {
	team, web := map[string]string{"team": "a"}, map[string]string{"app": "web"}
	cases := map[string]struct {
		reason     string
		ref        lifecycle.Reference
		namespaces map[string]map[string]string
		was, is    map[string]string
		wakes      bool
	}{
		"Selected":       {"it has the label", lifecycle.Reference{Selector: selecting(web)}, nil, web, web, true},
		"Begins":         {"it got the label", lifecycle.Reference{Selector: selecting(web)}, nil, nil, web, true},
		"Ends":           {"it lost the label", lifecycle.Reference{Selector: selecting(web)}, nil, web, nil, true},
		"Other":          {"it never had the label", lifecycle.Reference{Selector: selecting(web)}, nil, team, nil, false},
		"All":            {"an empty selector selects all", lifecycle.Reference{Selector: selecting(nil)}, nil, nil, nil, true},
		"Namespace":      {"it is in the namespace", lifecycle.Reference{Namespace: "n", Selector: selecting(web)}, nil, web, web, true},
		"OtherNamespace": {"it is in another namespace", lifecycle.Reference{Namespace: "m", Selector: selecting(web)}, nil, web, web, false},
		"NamespaceSelected": {"its namespace has the label", lifecycle.Reference{Selector: selecting(web), NamespaceSelector: selecting(team)},
			map[string]map[string]string{"n": team}, web, web, true},
		"NamespaceNotSelected": {"its namespace lacks the label", lifecycle.Reference{Selector: selecting(web), NamespaceSelector: selecting(team)},
			map[string]map[string]string{"n": web}, web, web, false},
		"NamespaceUnknown": {"its namespace was not seen yet", lifecycle.Reference{Selector: selecting(web), NamespaceSelector: selecting(team)},
			map[string]map[string]string{"m": web}, web, web, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := NewReferences()
			r.Watch = func(schema.GroupVersionKind) error { return nil }
			c.ref.Kind = monitorKind
			if err := r.Set(named("a"), []lifecycle.Reference{c.ref}); err != nil {
				t.Fatal(err)
			}
			for ns, of := range c.namespaces {
				r.namespaceChanged(ns, of)
			}
			was, is := labeled("m", c.was), labeled("m", c.is)
			was.SetResourceVersion("1")
			is.SetResourceVersion("2")
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			r.Handler(monitorKind).Update(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, q)
			if got := q.Len() == 1; got != c.wakes {
				t.Errorf("%s: reconciled %v", c.reason, got)
			}
		})
	}
}

// A namespace that gets or loses the label wakes those that select by it.
func TestNamespaceLabelsWakeTheirUsers(t *testing.T) {
	r, watched := NewReferences(), []string{}
	r.Watch = func(kind schema.GroupVersionKind) error { watched = append(watched, kind.Kind); return nil }
	team := map[string]string{"team": "a"}
	ref := lifecycle.Reference{Kind: monitorKind, Selector: selecting(nil), NamespaceSelector: selecting(team)}
	if err := r.Set(named("a"), []lifecycle.Reference{ref}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Namespace", "Monitor"}, watched); diff != "" {
		t.Error(diff)
	}
	for i, step := range []struct {
		of    map[string]string
		wakes int
	}{{map[string]string{}, 0}, {team, 1}, {team, 0}, {nil, 1}, {nil, 0}} {
		if got := r.namespaceChanged("n", step.of); len(got) != step.wakes {
			t.Errorf("step %d: %v are reconciled, want %d", i, got, step.wakes)
		}
	}
}

// A selector with a mistake is reported, and the other references of the object have their effect.
func TestInvalidSelectorIsReported(t *testing.T) {
	r := NewReferences()
	r.Watch = func(schema.GroupVersionKind) error { return nil }
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}}}
	for _, ref := range []lifecycle.Reference{
		{Kind: monitorKind, Selector: wrong}, {Kind: monitorKind, Selector: selecting(nil), NamespaceSelector: wrong},
	} {
		err := r.Set(named("a"), []lifecycle.Reference{ref, secretRef("s")})
		if err == nil || !strings.Contains(err.Error(), "Selector of Monitor is invalid") {
			t.Errorf("got %v", err)
		}
		if got := r.usersOf(secretKind, labeled("s", nil)); len(got) != 1 {
			t.Errorf("the Secret is used by %v", got)
		}
	}
}
