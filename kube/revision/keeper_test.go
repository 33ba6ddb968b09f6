package revision_test

import (
	"context"
	"encoding/json"
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

// counted is a client that counts what is asked of it.
type counted struct {
	client.WithWatch
	lists, writes int
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
		Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			c.writes++
			return w.Patch(ctx, obj, p, o...)
		},
	})
	return c
}

// owner is any object with a spec.
func owner(generation int64, image string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "u1", Generation: generation}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
	return d
}

func newKeeper(c *counted) *revision.Store {
	return revision.NewStore("app", appsv1.SchemeGroupVersion.WithKind("Deployment"), nil, c, c)
}

// One write for a spec, one more if it settles only later, and none at rest, nor after a
// restart; one list for all objects.
func TestKeepWritesOnceForASpec(t *testing.T) {
	c := count()
	k := newKeeper(c)
	type turn struct {
		reason     string
		generation int64
		image      string
		settled    bool
		restart    bool
		writes     int
		number     int64
	}
	for _, s := range []turn{
		{"the first spec is settled at first sight", 1, "a", true, false, 1, 1},
		{"at rest", 1, "a", true, false, 0, 1},
		{"a spec that is only begun", 2, "b", false, false, 1, 2},
		{"still", 2, "b", false, false, 0, 2},
		{"it settles", 2, "b", true, false, 1, 2},
		{"and is disturbed", 2, "b", false, false, 0, 2},
		{"and settles again", 2, "b", true, false, 0, 2},
		{"a restart knows all that", 2, "b", true, true, 0, 2},
		{"the same spec under another generation", 4, "b", true, false, 0, 2},
		{"the first again is another revision", 5, "a", true, false, 1, 3},
	} {
		if s.restart {
			k = newKeeper(c)
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
		t.Errorf("the last that settled with another spec is %+v", to)
	}
	if _, ok := revision.LastSettled(all[:1], all[0].Digest); ok {
		t.Error("there is none before the first")
	}
}

// That a spec has settled stays true while it is disturbed and across a restart, and says
// nothing of another.
func TestSettledIsAboutTheSpec(t *testing.T) {
	c := count()
	k := newKeeper(c)
	for _, s := range []struct {
		reason     string
		generation int64
		image      string
		keep       bool
		settles    bool
		want       bool
	}{
		{"nothing is known", 1, "a", false, false, false},
		{"it is begun", 1, "a", true, false, false},
		{"it settles", 1, "a", true, true, true},
		{"and is disturbed", 1, "a", true, false, true},
		{"the same under another generation", 2, "a", false, false, true},
		{"another", 3, "b", false, false, false},
		{"another that is begun", 3, "b", true, false, false},
	} {
		for _, keeper := range []*revision.Store{k, newKeeper(c)} {
			if s.keep {
				if _, err := keeper.Save(t.Context(), owner(s.generation, s.image), "", s.settles); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := keeper.Settled(t.Context(), owner(s.generation, s.image)); got != s.want || err != nil {
				t.Errorf("%s: %v, %v", s.reason, got, err)
			}
		}
	}
}

// What is provided is written when it is something else, and known after a restart; of
// another spec it says nothing.
func TestWhatIsProvidedIsNoted(t *testing.T) {
	c := count()
	k := newKeeper(c)
	if err := k.Note(t.Context(), owner(1, "a"), []string{"Service/d"}); err != nil || c.writes != 0 {
		t.Errorf("of a spec that was not kept nothing is noted: %d writes, %v", c.writes, err)
	}
	if _, err := k.Save(t.Context(), owner(1, "a"), "", true); err != nil {
		t.Fatal(err)
	}
	for i, s := range []struct {
		provided []string
		writes   int
	}{
		{[]string{"Service/d"}, 1}, {[]string{"Service/d"}, 0}, {[]string{"ConfigMap/d", "Service/d"}, 1}, {[]string{"ConfigMap/d", "Service/d"}, 0},
	} {
		before := c.writes
		if err := k.Note(t.Context(), owner(1, "a"), s.provided); err != nil || c.writes-before != s.writes {
			t.Errorf("%d: %d writes, %v", i, c.writes-before, err)
		}
		for _, keeper := range []*revision.Store{k, newKeeper(c)} {
			if got, err := keeper.Provided(t.Context(), owner(1, "a")); err != nil || !slices.Equal(got, s.provided) {
				t.Errorf("%d: got %v, %v", i, got, err)
			}
			if got, err := keeper.Provided(t.Context(), owner(2, "b")); err != nil || len(got) > 0 {
				t.Errorf("%d: of another spec it has %v, %v", i, got, err)
			}
		}
	}
}

// An object that is made again under its name begins anew.
func TestAnotherObjectOfTheNameHasItsOwnRevisions(t *testing.T) {
	c := count()
	k := newKeeper(c)
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

// Who led before may have written the same number: nothing is overwritten, and the next
// turn knows.
func TestAnotherLeaderWasFaster(t *testing.T) {
	c := count()
	mine, theirs := newKeeper(c), newKeeper(c)
	for _, k := range []*revision.Store{mine, theirs} {
		if _, err := k.Save(t.Context(), owner(1, "a"), "", true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := theirs.Save(t.Context(), owner(2, "b"), "", true); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Save(t.Context(), owner(2, "c"), "", true); err == nil {
		t.Error("another revision 2 was taken for ours")
	}
	if number, err := mine.Save(t.Context(), owner(2, "c"), "", true); err != nil || number != 3 {
		t.Errorf("it then is revision %d, %v", number, err)
	}
}
