package specchange

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/enginetest"
	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// finder knows no revisions and no history yet.
func finder() *Finder[*enginetest.Object] {
	c := enginetest.Builder().Build()
	return &Finder[*enginetest.Object]{
		Kind: enginetest.Kind, New: enginetest.NewObject,
		Revisions: revision.NewStore("app", enginetest.Kind, nil, c, c), History: historystore.New("app", "v1", c, c),
	}
}

// An object without a settled revision is new only if none of its revisions is missing.
func TestOriginWithoutSettledRevision(t *testing.T) {
	revisions := func(from, to int64, settled ...int64) (all []revision.Revision) {
		for n := from; n <= to; n++ {
			all = append(all, revision.Revision{Number: n})
		}
		for _, n := range settled {
			all[n-from].Settled = true
		}
		return all
	}
	cases := map[string]struct {
		reason string
		all    []revision.Revision
		want   Origin
	}{
		"None":     {"no spec was accepted yet", nil, FromNew},
		"New":      {"the first specs do not settle", revisions(1, revision.Limit), FromNew},
		"Returned": {"the present spec is the one that settled last", revisions(5, 14, 6), FromNew},
		"Deleted":  {"a revision that is missing may have settled", revisions(2, revision.Limit+1), FromChange},
		"ByHand":   {"a user deleted the revision that settled", revisions(2, 3), FromChange},
	}
	for name, c := range cases {
		if got := originWithoutSettled(c.all); got != c.want {
			t.Errorf("%s: %s: origin %d, want %d", name, c.reason, got, c.want)
		}
	}
}

// A user deletes all revisions, and the operator restarts: the last spec is unknown, so a policy
// holds the present one, also after the next restart.
func TestObjectWithoutItsRevisionsIsNotNew(t *testing.T) {
	ready := []metav1.Condition{{Type: lifecycle.ConditionReady, Status: metav1.ConditionTrue}}
	cases := map[string]struct {
		reason     string
		conditions []metav1.Condition
		entry      *history.Entry
		want       Origin
	}{
		"New":    {"it was never as declared, and no step was taken", nil, nil, FromNew},
		"Served": {"it was as declared", ready, nil, FromChange},
		"Acted":  {"a step was taken", nil, &history.Entry{At: time.Unix(1, 0), Result: history.ResultSucceeded}, FromChange},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, obj := finder(), enginetest.New("a")
			obj.Spec.From, obj.Status.Conditions = "new", c.conditions
			if err := f.History.Record(t.Context(), obj, nil, c.entry); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := f.OriginOf(t.Context(), obj, func(*enginetest.Object) bool { return true }); got != c.want {
					t.Errorf("%s: origin %d, want %d", c.reason, got, c.want)
				}
				if _, err := f.Revisions.Save(t.Context(), obj, "", false); err != nil {
					t.Fatal(err)
				}
				f.Forget(client.ObjectKeyFromObject(obj)) // as after a restart
			}
		})
	}
}

// A step that the spec which worked last needs, too, restores the world; any other carries out the change.
func TestOriginOfAStep(t *testing.T) {
	f, obj := finder(), enginetest.New("a")
	obj.Spec.From = "old"
	if _, err := f.Revisions.Save(t.Context(), obj, "ann", true); err != nil {
		t.Fatal(err)
	}
	needs := func(from string) func(*enginetest.Object) bool {
		return func(want *enginetest.Object) bool { return want.Spec.From == from }
	}
	if got := f.OriginOf(t.Context(), obj, needs("none")); got != FromWorld {
		t.Errorf("the present spec has worked: origin %d", got)
	}
	obj.Spec.From, obj.Generation = "new", 2
	for from, want := range map[string]Origin{"old": FromWorld, "new": FromChange} {
		if got := f.OriginOf(t.Context(), obj, needs(from)); got != want {
			t.Errorf("only the spec %q needs it: origin %d, want %d", from, got, want)
		}
		if got := f.NeededBefore(t.Context(), obj, needs(from)); got != (want == FromWorld) {
			t.Errorf("only the spec %q needs it: needed before is %t", from, got)
		}
	}
	last, want, found := f.WorkedBefore(t.Context(), obj)
	if found != FromWorld || last.Number != 1 || want.Spec.From != "old" || want.Name != "a" {
		t.Errorf("revision %d of %+v worked before: %d", last.Number, want, found)
	}
	obj.DeletionTimestamp = &metav1.Time{}
	if got := f.OriginOf(t.Context(), obj, needs("old")); got != FromChange {
		t.Errorf("a deletion has the origin %d", got)
	}
}
