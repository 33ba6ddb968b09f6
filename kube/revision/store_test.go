package revision_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/governor-dev/governor/kube/revision"
)

// counted is a client that counts its requests.
type counted struct {
	client.WithWatch
	lists, writes int
	// deletes is how many of the next deletes fail.
	deletes int
}

func count() *counted {
	c := &counted{}
	c.WithWatch = interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
			c.lists++
			return w.List(ctx, l, o...)
		},
		Create: func(ctx context.Context, w client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			c.writes++
			return w.Create(ctx, obj, o...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			if c.deletes > 0 {
				c.deletes--
				return errors.New("the API server is away")
			}
			return w.Delete(ctx, obj, o...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			c.writes++
			return w.Patch(ctx, obj, p, o...)
		},
	})
	return c
}

// owner returns an object with a spec.
func owner(generation int64, image string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "u1", Generation: generation}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
	return d
}

func newStore(c *counted) *revision.Store {
	return revision.NewStore("app", appsv1.SchemeGroupVersion.WithKind("Deployment"), nil, c, c)
}

// A spec takes one write, and one more if it settles later. An unchanged spec takes none,
// also after a restart. One list covers all objects.
func TestSaveWritesOncePerSpec(t *testing.T) {
	c := count()
	k := newStore(c)
	type step struct {
		reason     string
		generation int64
		image      string
		settled    bool
		restart    bool
		writes     int
		number     int64
	}
	for _, s := range []step{
		{"the first spec settles at once", 1, "a", true, false, 1, 1},
		{"an unchanged spec", 1, "a", true, false, 0, 1},
		{"a second spec that has not settled", 2, "b", false, false, 1, 2},
		{"it still has not settled", 2, "b", false, false, 0, 2},
		{"the second spec settles", 2, "b", true, false, 1, 2},
		{"the second spec is disturbed", 2, "b", false, false, 0, 2},
		{"the second spec settles again", 2, "b", true, false, 0, 2},
		{"a restart reads the stored revisions", 2, "b", true, true, 0, 2},
		{"the same spec under another generation", 4, "b", true, false, 0, 2},
		{"the first spec again is a new revision", 5, "a", true, false, 1, 3},
	} {
		if s.restart {
			k = newStore(c)
		}
		before := c.writes
		number, err := k.Save(t.Context(), owner(s.generation, s.image), "kubectl", s.settled)
		if err != nil || number != s.number || c.writes-before != s.writes {
			t.Errorf("%s: revision %d after %d writes, want %d after %d: %v", s.reason, number, c.writes-before, s.number, s.writes, err)
		}
	}
	if c.lists != 2 {
		t.Errorf("%d lists, want one for each start", c.lists)
	}
	all, err := k.List(t.Context(), owner(5, "a"))
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	to, ok := revision.LastSettled(all, all[2].Digest)
	if !ok || to.Number != 2 || to.By != "kubectl" || !json.Valid(to.Spec) {
		t.Errorf("LastSettled returned %+v", to)
	}
	if _, ok := revision.LastSettled(all[:1], all[0].Digest); ok {
		t.Error("LastSettled found a revision before the first")
	}
}

// A settled spec stays settled while it is disturbed and across a restart. A different
// spec is not affected.
func TestSettledBelongsToTheSpec(t *testing.T) {
	c := count()
	k := newStore(c)
	for _, s := range []struct {
		reason     string
		generation int64
		image      string
		keep       bool
		settles    bool
		want       bool
	}{
		{"no revision exists", 1, "a", false, false, false},
		{"the first spec is stored", 1, "a", true, false, false},
		{"the first spec settles", 1, "a", true, true, true},
		{"the first spec is disturbed", 1, "a", true, false, true},
		{"the same spec under another generation", 2, "a", false, false, true},
		{"a second spec", 3, "b", false, false, false},
		{"a second spec that is stored", 3, "b", true, false, false},
	} {
		for _, store := range []*revision.Store{k, newStore(c)} {
			if s.keep {
				if _, err := store.Save(t.Context(), owner(s.generation, s.image), "", s.settles); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := store.Settled(t.Context(), owner(s.generation, s.image)); got != s.want || err != nil {
				t.Errorf("%s: %v, %v", s.reason, got, err)
			}
		}
	}
}

// The applied objects are written only when they change, and they survive a restart. They
// do not count for a different spec.
func TestNoteRecordsAppliedObjects(t *testing.T) {
	c := count()
	k := newStore(c)
	if err := k.RecordApplied(t.Context(), owner(1, "a"), []string{"Service/d"}); err != nil || c.writes != 0 {
		t.Errorf("objects were recorded for a spec that is not stored: %d writes, %v", c.writes, err)
	}
	if _, err := k.Save(t.Context(), owner(1, "a"), "", true); err != nil {
		t.Fatal(err)
	}
	for i, s := range []struct {
		applied []string
		writes  int
	}{
		{[]string{"Service/d"}, 1}, {[]string{"Service/d"}, 0}, {[]string{"ConfigMap/d", "Service/d"}, 1}, {[]string{"ConfigMap/d", "Service/d"}, 0},
	} {
		before := c.writes
		if err := k.RecordApplied(t.Context(), owner(1, "a"), s.applied); err != nil || c.writes-before != s.writes {
			t.Errorf("%d: %d writes, %v", i, c.writes-before, err)
		}
		for _, store := range []*revision.Store{k, newStore(c)} {
			if got, err := store.AppliedObjects(t.Context(), owner(1, "a")); err != nil || !slices.Equal(got, s.applied) {
				t.Errorf("%d: got %v, %v", i, got, err)
			}
			if got, err := store.AppliedObjects(t.Context(), owner(2, "b")); err != nil || len(got) > 0 {
				t.Errorf("%d: another spec has %v, %v", i, got, err)
			}
		}
	}
}

// An object that is recreated under its name starts at revision 1.
func TestRecreatedObjectHasItsOwnRevisions(t *testing.T) {
	c := count()
	k := newStore(c)
	for i, uid := range []types.UID{"u1", "u2"} {
		d := owner(1, "a")
		d.UID = uid
		if number, err := k.Save(t.Context(), d, "", true); err != nil || number != 1 || c.writes != i+1 {
			t.Errorf("%s: revision %d, %d writes, %v", uid, number, c.writes, err)
		}
		if all, err := k.List(t.Context(), d); err != nil || len(all) != 1 {
			t.Errorf("%s has %v, %v", uid, all, err)
		}
	}
}

// A previous leader may have written the same number. Nothing is overwritten, and the next
// call continues after that number.
func TestSaveDoesNotOverwriteRevisionOfPreviousLeader(t *testing.T) {
	c := count()
	own, other := newStore(c), newStore(c)
	for _, k := range []*revision.Store{own, other} {
		if _, err := k.Save(t.Context(), owner(1, "a"), "", true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Save(t.Context(), owner(2, "b"), "", true); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Save(t.Context(), owner(2, "c"), "", true); err == nil {
		t.Error("an existing revision 2 with another spec was accepted")
	}
	if number, err := own.Save(t.Context(), owner(2, "c"), "", true); err != nil || number != 3 {
		t.Errorf("the next call returned revision %d, %v", number, err)
	}
}

// A delete that failed is repeated: no object keeps more revisions than the limit.
func TestSaveRepeatsAFailedDelete(t *testing.T) {
	c := count()
	k := newStore(c)
	for generation := int64(1); generation <= revision.Limit+2; generation++ {
		d := owner(generation, fmt.Sprint("image-", generation))
		if generation == revision.Limit+1 {
			c.deletes = 1
			if _, err := k.Save(t.Context(), d, "", true); err == nil {
				t.Error("a failed delete is no error")
			}
		}
		if _, err := k.Save(t.Context(), d, "", true); err != nil {
			t.Fatal(err)
		}
	}
	all := &appsv1.ControllerRevisionList{}
	if err := c.List(t.Context(), all); err != nil || len(all.Items) != revision.Limit {
		t.Errorf("%d revisions are stored, want %d, %v", len(all.Items), revision.Limit, err)
	}
}

// The newest revision that settled stays, however many specs follow that do not settle. Once
// another one settles it is an old revision like any other.
func TestNewestSettledRevisionStays(t *testing.T) {
	for name, restart := range map[string]bool{"one operator": false, "an operator for each change": true} {
		t.Run(name, func(t *testing.T) {
			c := count()
			k := newStore(c)
			last := int64(2*revision.Limit + 4)
			for g := int64(1); g <= last; g++ {
				if restart {
					k = newStore(c)
				}
				settles := g == 1 || g == 2 || g == revision.Limit+5
				if _, err := k.Save(t.Context(), owner(g, fmt.Sprint("image-", g%2)), "", settles); err != nil {
					t.Fatal(err)
				}
				all, err := k.List(t.Context(), owner(g, ""))
				newest, ok := revision.LastSettled(all, "present")
				want := int64(2)
				if g < 2 || g >= revision.Limit+5 {
					want = g
				}
				want = min(want, revision.Limit+5)
				if err != nil || !ok || newest.Number != want || len(all) > revision.Limit+1 {
					t.Fatalf("after %d specs: %d revisions, settled last %d, want %d: %v", g, len(all), newest.Number, want, err)
				}
			}
			all, err := k.List(t.Context(), owner(last, ""))
			if err != nil || len(all) != revision.Limit || all[0].Number != last-revision.Limit+1 {
				t.Errorf("%d revisions are left, from %d: %v", len(all), all[0].Number, err)
			}
		})
	}
}
