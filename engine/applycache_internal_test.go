package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/engine/internal/memory"
	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/credential"
	"github.com/governor-dev/governor/lifecycle"
)

// town is a world whose news are a list, as a real one's are.
type town struct{ Houses []string }

// steward counts how often it is asked what there must be; it wants nothing.
type steward struct {
	lifecycle.Planner[*fake, town]
	asked int
}

func (s *steward) Resources(*fake, town) ([]lifecycle.Object, error) {
	s.asked++
	return nil, nil
}

func TestUnchangedInputsAreNotAppliedAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	key := types.NamespacedName{Namespace: "n", Name: "o"}
	cases := map[string]struct {
		reason string
		change func(e *engine[*fake, town], obj *fake, seen *town)
		asked  int
	}{
		"Same":    {"nothing is new", func(*engine[*fake, town], *fake, *town) {}, 1},
		"World":   {"the world is another", func(_ *engine[*fake, town], _ *fake, seen *town) { seen.Houses = []string{"a", "c"} }, 2},
		"Object":  {"the object was changed", func(_ *engine[*fake, town], obj *fake, _ *town) { obj.ResourceVersion = "2" }, 2},
		"Another": {"it is another of the same name", func(_ *engine[*fake, town], obj *fake, _ *town) { obj.UID = "v" }, 2},
		"Heard":   {"something that belongs to it was changed", func(e *engine[*fake, town], _ *fake, _ *town) { e.applyCache.Heard(key) }, 2},
		"Gone":    {"an absent object has no entry", func(e *engine[*fake, town], _ *fake, _ *town) { e.applyCache.Forget(key) }, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			planner := &steward{}
			e := engineOf(now, fakeKind, App[*fake, town]{Planner: planner})
			e.applier, e.filler = &apply.Applier{}, credential.New(nil, time.Now)
			obj, seen := &fake{}, town{Houses: []string{"a", "b"}}
			obj.UID, obj.ResourceVersion = "u", "1"
			turn := func() {
				e.provide(t.Context(), &reconciliation[*fake, town]{Result: publish.Result{Key: key, Object: obj}, obj: obj, seen: town{append([]string(nil), seen.Houses...)}})
			}
			turn()
			turn()
			c.change(e, obj, &seen)
			turn()
			if planner.asked != c.asked {
				t.Errorf("%s: asked %d times, want %d", c.reason, planner.asked, c.asked)
			}
		})
	}
}

// What happens while a turn looks is not taken for seen by it.
func TestEventDuringReconcileInvalidatesApplyCache(t *testing.T) {
	var c memory.ApplyCache[town]
	key, obj := types.NamespacedName{Name: "o"}, &fake{}
	news := c.News(key)
	c.Heard(key)
	c.Learn(key, news, &memory.Basis[town]{})
	if _, still := c.Unchanged(key, obj, town{}, time.Time{}); still {
		t.Error("it was changed meanwhile")
	}
}

func TestACertificateIsLookedAtWhenItIsDue(t *testing.T) {
	var c memory.ApplyCache[town]
	key, obj, due := types.NamespacedName{Name: "o"}, &fake{}, time.Unix(1000, 0)
	c.Learn(key, c.News(key), &memory.Basis[town]{Due: due})
	got, still := c.Unchanged(key, obj, town{}, due.Add(-time.Nanosecond))
	if !still || !got.Equal(due) {
		t.Errorf("until then nothing is to be done, got %v, due %s", still, got)
	}
	if _, still = c.Unchanged(key, obj, town{}, due); still {
		t.Error("it is due")
	}
}
