package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/dynamic"
)

const annotationSaved = "dynamic.test.governor.dev/saved-by"

// vault is an application of two kinds: a Store, and a Copy that saves the Store that it names.
// Each has a ConfigMap, of a name that both can have.
type vault struct {
	lifecycle.NoConditions[*dynamic.Object, string]
	copies bool
}

func (vault) Resources(want *dynamic.Object, _ string) ([]lifecycle.Object, error) {
	name, _, _ := unstructured.NestedString(want.Object, "spec", "config")
	return []lifecycle.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"of": want.GetKind()},
	}}, nil
}

// Next saves the Store; the world is who saved it last.
func (v vault) Next(want *dynamic.Object, savedBy string, _ time.Time) lifecycle.Decision {
	if v.copies && savedBy != want.GetName() {
		return lifecycle.Proceed(lifecycle.Step{Name: "Save", Target: want.GetName(), Reason: "NotSaved", Message: "The store is not saved."})
	}
	return lifecycle.First()
}

func (vault) Effect(_ *dynamic.Object, _ string, s lifecycle.Step) (during, after string) {
	return "", s.Target
}

func (vault) Status(want *dynamic.Object, savedBy string) {
	want.SetStatus(map[string]any{"savedBy": savedBy})
}

// vaultDriver is one value that the drivers of both kinds share, as connections would be.
type vaultDriver struct {
	store  schema.GroupVersionKind
	counts *counts
	made   atomic.Int32
	stray  atomic.Value // the error of a write while it observed
}

func (v *vaultDriver) driver(a kube.Access) lifecycle.Driver[*dynamic.Object, string] {
	v.made.Add(1)
	return dynamicDriver[string]{
		counts: v.counts,
		observe: func(ctx context.Context, o *dynamic.Object) (string, error) {
			err := a.Client.Create(ctx, configMapNamed(o.GetNamespace(), "stray"))
			v.stray.Store(fmt.Errorf("observing: %w", err))
			s := v.named(o)
			err = a.Live.Get(ctx, client.ObjectKeyFromObject(s), s)
			return s.GetAnnotations()[annotationSaved], client.IgnoreNotFound(err)
		},
		act: func(ctx context.Context, o *dynamic.Object, _ lifecycle.Step) error {
			note := `{"metadata":{"annotations":{"` + annotationSaved + `":"` + o.GetName() + `"}}}`
			return a.Client.Patch(ctx, v.named(o), client.RawPatch(types.MergePatchType, []byte(note)))
		},
	}
}

// named is the Store that the object names, or the object itself.
func (v *vaultDriver) named(o *dynamic.Object) *unstructured.Unstructured {
	name, names, _ := unstructured.NestedString(o.Object, "spec", "store")
	if !names {
		name = o.GetName()
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v.store)
	u.SetNamespace(o.GetNamespace())
	u.SetName(name)
	return u
}

func (v *vaultDriver) app(name string, kind schema.GroupVersionKind, copies bool) engine.App[*dynamic.Object, string] {
	app := engine.App[*dynamic.Object, string]{
		Name: name, New: dynamic.New(kind), Planner: vault{copies: copies}, Steps: []lifecycle.StepType{{Name: "Save"}}, Driver: v.driver, Owns: []client.Object{&corev1.ConfigMap{}},
	}
	if copies {
		app.Abilities.References = func(want *dynamic.Object) []lifecycle.Reference {
			s := v.named(want)
			return []lifecycle.Reference{{Kind: v.store, Namespace: s.GetNamespace(), Name: s.GetName()}}
		}
	}
	return app
}

// Two kinds of an application share a driver. A Store and a Copy of one name have nothing else in
// common: what belongs to one neither wakes the other nor is pruned or taken over by it. The Copy
// acts on the Store by a step of its own, and hears of its changes.
func TestKindsOfOneApplicationShareADriver(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	store, copied := installDynamic(t, "Store"), installDynamic(t, "Copy")
	v := &vaultDriver{store: store, counts: newCounts()}
	must(t, engine.Register(op.engine, v.app("vault", store, false)))
	if err := engine.Register(op.engine, v.app("vault", copied, true)); err == nil || !strings.Contains(err.Error(), "each kind needs its own") {
		t.Fatalf("one name for two kinds: %v", err)
	}
	must(t, engine.Register(op.engine, v.app("vault-copy", copied, true)))
	t.Cleanup(func() {
		must(t, op.engine.Unregister(context.Background(), store.GroupKind()))
		must(t, op.engine.Unregister(context.Background(), copied.GroupKind()))
	})

	newDynamic(t, store, namespace, "x", map[string]any{"config": "x-store"})
	dynamicReaches(t, store, namespace, "x", "AsDeclared")
	newDynamic(t, copied, namespace, "x", map[string]any{"config": "x-copy", "store": "x"})
	dynamicReaches(t, copied, namespace, "x", "AsDeclared")
	if s, err := getDynamic(t, store, namespace, "x"); err != nil || s.GetAnnotations()[annotationSaved] != "x" {
		t.Errorf("the step has not acted on the store: %v, %v", s.GetAnnotations(), err)
	}
	if n := v.made.Load(); n != 2 {
		t.Errorf("%d drivers were made", n)
	}
	if err, _ := v.stray.Load().(error); !errors.Is(err, readyourwrites.ErrObserving) {
		t.Errorf("a write while it observes: %v", err)
	}

	quiet := v.counts.of("Store", "x")
	must(t, api.Delete(t.Context(), configMapNamed(namespace, "x-copy")))
	eventually(t, "the copy's ConfigMap is there again", func() error {
		_, err := get(t, &corev1.ConfigMap{}, namespace, "x-copy")
		return err
	})
	if now := v.counts.of("Store", "x"); now != quiet {
		t.Errorf("a child of the copy woke the store %d times", now-quiet)
	}

	v.storeChanges(t, namespace, store)
	v.nameIsTaken(t, namespace, store, copied)
}

// storeChanges changes the store: the copy hears of it, and keeps what belongs to it.
func (v *vaultDriver) storeChanges(t *testing.T, namespace string, store schema.GroupVersionKind) {
	t.Helper()
	observed := v.counts.of("Copy", "x")
	editDynamic(t, store, namespace, "x", func(u *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(u.Object, "x-other", "spec", "config"))
	})
	eventually(t, "the copy hears of the store", func() error {
		if v.counts.of("Copy", "x") == observed {
			return errors.New("no observation")
		}
		return nil
	})
	gone(t, "what the store no longer declares", configMapNamed(namespace, "x-store"))
	if _, err := get(t, &corev1.ConfigMap{}, namespace, "x-copy"); err != nil {
		t.Errorf("the store pruned what is the copy's: %v", err)
	}
}

// nameIsTaken has both kinds declare an object that carries the label of one of them.
func (*vaultDriver) nameIsTaken(t *testing.T, namespace string, store, copied schema.GroupVersionKind) {
	t.Helper()
	orphan := configMapNamed(namespace, "x-orphan")
	orphan.Labels = map[string]string{lifecycle.LabelApp: "vault", lifecycle.LabelInstance: "x"}
	must(t, api.Create(t.Context(), orphan))
	editDynamic(t, copied, namespace, "x", func(u *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(u.Object, "x-orphan", "spec", "config"))
	})
	dynamicReaches(t, copied, namespace, "x", "NameTaken")
	editDynamic(t, store, namespace, "x", func(u *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(u.Object, "x-orphan", "spec", "config"))
	})
	dynamicReaches(t, store, namespace, "x", "AsDeclared")
}
