package kindcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// kind is what the tests cache: any kind that the scheme knows will do.
var kind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// server serves lists and watches of ConfigMaps over HTTP.
type server struct {
	manager.Manager
	url    string
	items  []corev1.ConfigMap
	events chan metav1.WatchEvent
}

func newServer(t *testing.T, items ...corev1.ConfigMap) *server {
	t.Helper()
	s := &server{items: items, events: make(chan metav1.WatchEvent)}
	over := httptest.NewServer(s)
	s.url = over.URL
	t.Cleanup(over.CloseClientConnections)
	return s
}

func (s *server) GetConfig() *rest.Config { return &rest.Config{Host: s.url} }
func (s *server) GetLogger() logr.Logger  { return logr.Discard() }

// ServeHTTP lists the items, or sends events until the client leaves. It refuses the initial events of a watch,
// as a server without the feature does, and the client lists.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case query.Get("watch") == "":
		_ = json.NewEncoder(w).Encode(corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: s.items,
		})
	case query.Has("sendInitialEvents"):
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	default:
		w.(http.Flusher).Flush()
		s.send(w, r)
	}
}

func (s *server) send(w http.ResponseWriter, r *http.Request) {
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-s.events:
			_ = json.NewEncoder(w).Encode(event)
			w.(http.Flusher).Flush()
		}
	}
}

func (s *server) happens(t *testing.T, what watch.EventType, c corev1.ConfigMap) {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case s.events <- metav1.WatchEvent{Type: string(what), Object: runtime.RawExtension{Raw: raw}}:
	case <-t.Context().Done():
		t.Fatal("nothing watches")
	}
}

// kinds says whether the kind has a CRD: it has until gone is called.
type kinds struct {
	absent bool
	served chan func()
}

func (k *kinds) IsAbsent(context.Context, schema.GroupVersionKind) (bool, error) {
	return k.absent, nil
}

func (k *kinds) While(ctx context.Context, _ schema.GroupVersionKind, run func(context.Context) error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case gone := <-k.served:
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() { <-ctx.Done(); gone() }()
		k.served <- stop
		return run(ctx)
	}
}

// serve lets the kind be served. The result removes its CRD.
func (k *kinds) serve() func() {
	k.served <- func() {}
	return <-k.served
}

// heard records what the cache reports, in its order.
type heard chan string

func (h heard) changed(old, now client.Object) { h <- data(old) + "->" + data(now) }

func data(obj client.Object) string {
	if c, ok := obj.(*corev1.ConfigMap); ok && c != nil {
		return c.Name + ":" + c.Data["v"]
	}
	return ""
}

func (h heard) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-h:
			if got != w {
				t.Errorf("the cache reports %q, want %q", got, w)
			}
		case <-t.Context().Done():
			t.Fatalf("the cache does not report %q", w)
		}
	}
}

func configMap(name, value string) corev1.ConfigMap {
	return corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "u", ResourceVersion: "2"}, Data: map[string]string{"v": value},
	}
}

func start(t *testing.T, s *server, k Kinds) (*Cache, heard) {
	t.Helper()
	h := make(heard)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	mapper.Add(kind, meta.RESTScopeNamespace)
	c := &Cache{
		Mgr: s, Kinds: k, Gvk: kind, Blank: &corev1.ConfigMap{}, Known: make(chan struct{}),
		Options: cache.Options{Scheme: clientgoscheme.Scheme, Mapper: mapper, HTTPClient: http.DefaultClient},
		Indices: map[string]client.IndexerFunc{"v": func(o client.Object) []string { return []string{o.(*corev1.ConfigMap).Data["v"]} }},
		Changed: h.changed, Complete: func(context.Context) { h <- "complete" },
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c, h
}

func (c *Cache) names(t *testing.T, value string) string {
	t.Helper()
	var all corev1.ConfigMapList
	if err := c.List(t.Context(), &all, client.MatchingFields{"v": value}); err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, item := range all.Items {
		names += item.Name
	}
	return names
}

// The objects are known before the operator acts, every change is reported, and none is known after the CRD is gone.
func TestCacheFollowsItsKind(t *testing.T) {
	s, k := newServer(t, configMap("a", "1")), &kinds{served: make(chan func())}
	c, h := start(t, s, k)
	remove := k.serve()
	h.expect(t, "->a:1", "complete")
	c.Await(t.Context())
	if got := c.names(t, "1"); got != "a" {
		t.Errorf("the cache has %q, want a", got)
	}
	s.happens(t, watch.Added, configMap("b", "1"))
	h.expect(t, "->b:1")
	s.happens(t, watch.Modified, configMap("a", "2"))
	h.expect(t, "a:1->a:2")
	s.happens(t, watch.Deleted, configMap("b", "1"))
	h.expect(t, "b:1->")
	if one, two := c.names(t, "1"), c.names(t, "2"); one != "" || two != "a" {
		t.Errorf("the cache has %q and %q, want none and a", one, two)
	}
	remove()
	again := k.serve() // the cache waits for the CRD again
	h.expect(t, "->a:1", "complete")
	again()
}

// Without a CRD the operator need not wait: there is no object.
func TestAbsentKindIsKnownToBeEmpty(t *testing.T) {
	c, h := start(t, newServer(t), &kinds{absent: true})
	h.expect(t, "complete")
	c.Await(t.Context())
	if got := c.names(t, "1"); got != "" {
		t.Errorf("the cache has %q, want none", got)
	}
}

// unknown cannot say whether the kind exists.
type unknown struct {
	*kinds
	asked int
}

func (u *unknown) IsAbsent(context.Context, schema.GroupVersionKind) (bool, error) {
	u.asked++
	return false, errors.New("the API server is away")
}

// An operator that cannot see the policies takes no step, and asks again.
func TestUnknownKindIsNotEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unknown{kinds: &kinds{served: make(chan func())}}
		c := &Cache{Mgr: &server{}, Kinds: u, Gvk: kind, Known: make(chan struct{}), Complete: func(context.Context) { t.Error("complete") }}
		ctx, stop := context.WithTimeout(t.Context(), 2*watchAgain+time.Second)
		defer stop()
		if err := c.Start(ctx); err != nil {
			t.Error(err)
		}
		c.Await(ctx)
		select {
		case <-c.Known:
			t.Error("the objects count as known")
		default:
		}
		if diff := cmp.Diff(3, u.asked); diff != "" {
			t.Error(fmt.Sprint("attempts: ", diff))
		}
	})
}
