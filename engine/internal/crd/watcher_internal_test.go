package crd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

var ringKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ring"}

// api is an API server with custom resource definitions, and what discovery says of their kinds.
type api struct {
	manager.Manager
	client client.Client
	served atomic.Bool
	err    error
}

func newAPI(t *testing.T) *api {
	t.Helper()
	s := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return &api{client: fake.NewClientBuilder().WithScheme(s).Build()}
}

func (a *api) GetCache() cache.Cache          { return reader{from: a.client} }
func (a *api) GetRESTMapper() meta.RESTMapper { return mapper{a: a} }

type reader struct {
	cache.Cache
	from client.Reader
}

func (r reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	return r.from.Get(ctx, key, obj, o...)
}

func (r reader) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	return r.from.List(ctx, list, o...)
}

type mapper struct {
	meta.RESTMapper
	a *api
}

func (m mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	switch {
	case m.a.err != nil:
		return nil, m.a.err
	case !m.a.served.Load():
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: gk.Group, Version: "v1", Resource: "rings"}}, nil
}

func (a *api) define(t *testing.T, name string, uid types.UID) {
	t.Helper()
	if err := a.client.Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}); err != nil {
		t.Fatal(err)
	}
}

func (a *api) remove(t *testing.T, name string) {
	t.Helper()
	if err := a.client.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	cases := map[string]struct {
		reason  string
		defined string
		served  bool
		err     error
		want    state
	}{
		"Absent":   {"there is no definition", "", false, nil, absent},
		"Another":  {"another kind of the group is defined", "gems.example.com", true, nil, accepted},
		"Foreign":  {"another group has such a kind", "rings.example.org", true, nil, absent},
		"Accepted": {"discovery does not know it yet", "rings.example.com", false, nil, accepted},
		"Outage":   {"discovery does not answer", "rings.example.com", true, errors.New("connection refused"), accepted},
		"Served":   {"it is served", "rings.example.com", true, nil, served},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.err = c.err
			a.served.Store(c.served)
			if c.defined != "" {
				a.define(t, c.defined, "1")
			}
			if _, got, err := NewWatcher(a).find(t.Context(), ringKind); err != nil || got != c.want {
				t.Errorf("%s: got %v, want %v, %v", c.reason, got, c.want, err)
			}
		})
	}
}

// appear returns when the kind is served: after the definition, and after discovery knows it.
func TestAppearWaitsUntilTheKindIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		w := NewWatcher(a)
		found := make(chan defined, 1)
		go func() {
			if d, err := w.appear(t.Context(), ringKind); err == nil {
				found <- d
			}
		}()
		synctest.Wait()
		a.define(t, "rings.example.com", "1")
		w.signal()
		synctest.Wait()
		if len(found) > 0 {
			t.Fatal("discovery does not know the kind, and it appeared")
		}
		a.served.Store(true)
		if d := <-found; d.Name != "rings.example.com" {
			t.Errorf("the definition %q appeared", d.Name)
		}
	})
}

// during ends when the definition is removed, or replaced by another of the name.
func TestDuringEndsWithTheDefinition(t *testing.T) {
	for name, replaced := range map[string]bool{"Removed": false, "Replaced": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(t)
				a.served.Store(true)
				a.define(t, "rings.example.com", "1")
				w := NewWatcher(a)
				d, err := w.appear(t.Context(), ringKind)
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() {
					ended <- w.during(t.Context(), d, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
				}()
				w.signal() // another definition has changed
				synctest.Wait()
				if len(ended) > 0 {
					t.Fatal("it ended with another definition")
				}
				a.remove(t, "rings.example.com")
				if replaced {
					a.define(t, "rings.example.com", "2")
				}
				w.signal()
				if err := <-ended; err != nil {
					t.Errorf("the end of a definition is the error %v", err)
				}
			})
		})
	}
}

// An error of what runs meanwhile is passed on.
func TestDuringReturnsTheError(t *testing.T) {
	a := newAPI(t)
	a.define(t, "rings.example.com", "1")
	broken := errors.New("it could not run")
	if err := NewWatcher(a).during(t.Context(), defined{"rings.example.com", "1"}, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
