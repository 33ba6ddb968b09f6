package readyourwrites_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/readyourwrites"
)

// reader returns one ConfigMap, or not found.
type reader struct {
	client.Reader
	shown *corev1.ConfigMap
}

func (r *reader) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	if r.shown == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	r.shown.DeepCopyInto(out.(*corev1.ConfigMap))
	return nil
}

func version(uid, rv string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{}
	cm.Name, cm.UID, cm.ResourceVersion = "c", types.UID(uid), rv
	return cm
}

func TestCaughtUp(t *testing.T) {
	cases := map[string]struct {
		reason       string
		cached, live *corev1.ConfigMap
		deleted      bool
		later        time.Duration
		want         bool
	}{
		"NotShown":        {"the cache does not show the write", nil, version("a", "10"), false, 0, false},
		"Older":           {"the cache shows an older version", version("a", "9"), version("a", "10"), false, 0, false},
		"Same":            {"the cache shows the write", version("a", "10"), nil, false, 0, true},
		"Newer":           {"the cache shows a newer version; versions compare as numbers", version("a", "101"), nil, false, 0, true},
		"DeletedByOthers": {"the API server says that the object is gone", nil, nil, false, readyourwrites.VerifyAfter, true},
		"LaggingCache":    {"the API server says that the cache lags", nil, version("a", "10"), false, readyourwrites.VerifyAfter, false},
		"DeletionUnseen":  {"the cache does not show the deletion yet", version("a", "10"), nil, true, 0, false},
		"DeletionSeen":    {"the cache shows the deletion", nil, nil, true, 0, true},
		"Recreated":       {"the cache shows a new object of the same name", version("b", "12"), nil, true, 0, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			tracker := readyourwrites.New(&reader{shown: c.cached}, &reader{shown: c.live}, func() time.Time { return now })
			owner := types.NamespacedName{Name: "o"}
			if c.deleted {
				tracker.Deleted(owner, version("a", "10"))
			} else {
				tracker.Wrote(owner, version("a", "10"))
			}
			now = now.Add(c.later)
			got, err := tracker.CaughtUp(t.Context(), owner)
			if err != nil || got != c.want {
				t.Errorf("%s: got %v, %v; want %v", c.reason, got, err, c.want)
			}
		})
	}
}

func TestForgetDropsPendingWrites(t *testing.T) {
	tracker := readyourwrites.New(&reader{}, &reader{}, time.Now)
	owner := types.NamespacedName{Name: "o"}
	tracker.Wrote(owner, version("a", "1"))
	tracker.Forget(owner)
	if ok, err := tracker.CaughtUp(t.Context(), owner); !ok || err != nil {
		t.Errorf("a forgotten owner has pending writes: %v, %v", ok, err)
	}
}

func TestIsOwnWrite(t *testing.T) {
	owner := types.NamespacedName{Name: "o"}
	cases := map[string]struct {
		reason string
		before func(*readyourwrites.Tracker, *reader)
		shown  *corev1.ConfigMap
		want   bool
	}{
		"Own":     {"the event shows the written version", func(*readyourwrites.Tracker, *reader) {}, version("a", "10"), true},
		"Newer":   {"another client wrote a newer version", func(*readyourwrites.Tracker, *reader) {}, version("a", "11"), false},
		"Foreign": {"no write is recorded", func(tr *readyourwrites.Tracker, _ *reader) { tr.Forget(owner) }, version("a", "10"), false},
		"Waiting": {"a reconcile waits for the event", func(tr *readyourwrites.Tracker, _ *reader) {
			_, _ = tr.CaughtUp(t.Context(), owner)
		}, version("a", "10"), false},
		"NoLongerWaiting": {"the waiting reconcile has run", func(tr *readyourwrites.Tracker, r *reader) {
			_, _ = tr.CaughtUp(t.Context(), owner)
			r.shown = version("a", "10")
			_, _ = tr.CaughtUp(t.Context(), owner)
			tr.Wrote(owner, version("a", "12"))
		}, version("a", "12"), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := &reader{}
			tracker := readyourwrites.New(r, r, time.Now)
			tracker.Wrote(owner, version("a", "10"))
			c.before(tracker, r)
			if got := tracker.IsOwnWrite(owner, c.shown); got != c.want {
				t.Errorf("%s: got %v", c.reason, got)
			}
			if c.want && tracker.IsOwnWrite(owner, c.shown) {
				t.Error("a write is reported as own twice")
			}
		})
	}
}

// formReader is a cache that has ConfigMaps in one form only.
type formReader struct {
	client.Client
	form    client.Object
	version string
}

func (r *formReader) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	return corev1.SchemeGroupVersion.WithKind("ConfigMap"), nil
}

func (r *formReader) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	if fmt.Sprintf("%T", out) != fmt.Sprintf("%T", r.form) {
		return &cache.ErrResourceNotCached{}
	}
	out.SetName(key.Name)
	out.SetUID("a")
	out.SetResourceVersion(r.version)
	return nil
}

// A write waits for the cache in whatever form that has the kind, and not if it does not have it.
func TestCaughtUpInAnyForm(t *testing.T) {
	owner := types.NamespacedName{Namespace: "ns", Name: "o"}
	for name, form := range map[string]client.Object{
		"Typed": &corev1.ConfigMap{}, "Metadata": &metav1.PartialObjectMetadata{}, "Unstructured": &unstructured.Unstructured{}, "None": nil,
	} {
		for shown, want := range map[string]bool{"9": form == nil, "10": true} {
			tracker := readyourwrites.New(&formReader{form: form, version: shown}, &reader{}, time.Now)
			tracker.Wrote(owner, version("a", "10"))
			if got, err := tracker.CaughtUp(t.Context(), owner); got != want || err != nil {
				t.Errorf("%s: the cache shows version %s: got %v, %v", name, shown, got, err)
			}
		}
	}
}

// Two unstructured objects of one name are two writes if their kinds differ.
func TestUnstructuredWritesAreOfTheirKind(t *testing.T) {
	owner := types.NamespacedName{Namespace: "ns", Name: "o"}
	of := func(kind string) client.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: kind})
		u.SetName("c")
		u.SetResourceVersion("10")
		return u
	}
	tracker := readyourwrites.New(&reader{}, &reader{}, time.Now)
	tracker.Wrote(owner, of("A"))
	if tracker.IsOwnWrite(owner, of("B")) || !tracker.IsOwnWrite(owner, of("A")) {
		t.Error("a write of one kind counts for another")
	}
}
