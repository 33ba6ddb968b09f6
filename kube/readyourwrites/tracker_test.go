package readyourwrites_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/readyourwrites"
)

// reader shows one ConfigMap, or none.
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
		"NotShown":       {"a write that the cache lacks must not be decided over", nil, version("a", "10"), false, 0, false},
		"Older":          {"an older version is not our write", version("a", "9"), version("a", "10"), false, 0, false},
		"Same":           {"our write is shown", version("a", "10"), nil, false, 0, true},
		"Newer":          {"versions are compared as numbers", version("a", "101"), nil, false, 0, true},
		"DeletedByHand":  {"in doubt the API server says that the object is gone", nil, nil, false, readyourwrites.Doubt, true},
		"LaggingCache":   {"in doubt the API server says that the cache lags", nil, version("a", "10"), false, readyourwrites.Doubt, false},
		"DeletionUnseen": {"our deletion is not shown yet", version("a", "10"), nil, true, 0, false},
		"DeletionSeen":   {"our deletion is shown", nil, nil, true, 0, true},
		"Recreated":      {"another object of that name is not the deleted one", version("b", "12"), nil, true, 0, true},
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

func TestForget(t *testing.T) {
	tracker := readyourwrites.New(&reader{}, &reader{}, time.Now)
	owner := types.NamespacedName{Name: "o"}
	tracker.Wrote(owner, version("a", "1"))
	tracker.Forget(owner)
	if ok, err := tracker.CaughtUp(t.Context(), owner); !ok || err != nil {
		t.Errorf("nothing is pending for an owner that is forgotten: %v, %v", ok, err)
	}
}

func TestEcho(t *testing.T) {
	owner := types.NamespacedName{Name: "o"}
	cases := map[string]struct {
		reason string
		before func(*readyourwrites.Tracker, *reader)
		shown  *corev1.ConfigMap
		want   bool
	}{
		"Ours":    {"what was written was known", func(*readyourwrites.Tracker, *reader) {}, version("a", "10"), true},
		"Newer":   {"somebody wrote after us", func(*readyourwrites.Tracker, *reader) {}, version("a", "11"), false},
		"Foreign": {"nothing was written", func(tr *readyourwrites.Tracker, _ *reader) { tr.Forget(owner) }, version("a", "10"), false},
		"Awaited": {"a turn came too early and waits for it", func(tr *readyourwrites.Tracker, _ *reader) {
			_, _ = tr.CaughtUp(t.Context(), owner)
		}, version("a", "10"), false},
		"NoLonger": {"who waited has had the turn since", func(tr *readyourwrites.Tracker, r *reader) {
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
				t.Error("an echo is heard once")
			}
		})
	}
}
