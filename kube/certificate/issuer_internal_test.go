package certificate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// cluster is what there is, by name: a Secret or the error of looking for it.
type cluster map[string]any

func (c cluster) Find(_ context.Context, _ client.Object, wanted lifecycle.Object) (client.Object, error) {
	switch found := c[wanted.GetName()].(type) {
	case *corev1.Secret:
		return found, nil
	case error:
		return nil, found
	}
	return nil, nil
}

// apply writes what was filled in, as the API server would.
func (c cluster) apply(t *testing.T, filled Filled) {
	t.Helper()
	for n, obj := range filled.Objects {
		s, ok := obj.(*corev1.Secret)
		if !ok {
			continue
		}
		existing, exists := c[s.Name].(*corev1.Secret)
		if v := s.ResourceVersion; v != "" && (exists && v != existing.ResourceVersion || !exists && v != apply.CreateOnlyVersion) {
			t.Fatalf("%s is meant for version %s", s.Name, v)
		}
		s.UID, s.ResourceVersion = types.UID(s.Name), fmt.Sprint(len(c), n, s.ResourceVersion)
		c[s.Name] = s
	}
}

func (c cluster) edit(name, key string, value []byte) {
	s := c[name].(*corev1.Secret).DeepCopy()
	s.Data[key] = value
	c[name] = s
}

func wanted() []lifecycle.Object {
	all := []lifecycle.Object{&corev1.Service{}}
	all[0].SetName("a")
	for _, name := range slices.Sorted(maps.Keys(recipes())) {
		all = append(all, recipes()[name].Secret(name, nil))
	}
	return all
}

func fill(t *testing.T, i *Issuer) Filled {
	t.Helper()
	f, err := i.Fill(t.Context(), &corev1.ConfigMap{}, wanted())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func at(now *time.Time) func() time.Time { return func() time.Time { return *now } }

// names are the filled objects in their order: complete, or with the version that
// they may be written over.
func names(f Filled) []string {
	var all []string
	for _, obj := range f.Objects {
		s, ok := obj.(*corev1.Secret)
		if !ok {
			all = append(all, "Service")
			continue
		}
		all = append(all, fmt.Sprintf("%s %d %s", s.Name, len(s.Data), s.ResourceVersion))
	}
	return all
}

func TestFill(t *testing.T) {
	now := noon
	base := cluster{}
	base.apply(t, fill(t, New(base, at(&now))))
	version := func(c cluster, name string) string { return c[name].(*corev1.Secret).ResourceVersion }
	cases := map[string]struct {
		reason string
		change func(cluster)
		want   []string
	}{
		"Nothing": {"all is created, and nothing overwritten: the authority first, then who trusts it",
			func(c cluster) { clear(c) }, []string{"ca 3 1", "Service", "a 3 1", "b 3 1"}},
		"AllThere": {"any version will do for what does not change",
			func(cluster) {}, []string{"ca 3 ", "Service", "a 3 ", "b 3 "}},
		"OneGone": {"what was made is written last",
			func(c cluster) { delete(c, "a") }, []string{"ca 3 ", "Service", "b 3 ", "a 3 1"}},
		"Damaged": {"a repair is meant for the damage that was seen",
			func(c cluster) { c.edit("a", crt, nil) }, []string{"ca 3 ", "Service", "b 3 ", "a 3 " + version(base, "a")}},
		"ExtraKey": {"what others add is theirs",
			func(c cluster) { c.edit("a", "theirs", []byte("x")) }, []string{"ca 3 ", "Service", "a 3 ", "b 3 "}},
		"ForeignLeaf": {"it is for the applier to refuse",
			func(c cluster) { c["a"] = &apply.ForeignError{} }, []string{"ca 3 ", "Service", "a 0 1", "b 3 "}},
		"ForeignAuthority": {"what it did not sign stays, and is not pruned; what is missing cannot be made",
			func(c cluster) { c["ca"] = &apply.ForeignError{}; delete(c, "a") }, []string{"ca 0 1", "Service", "b 3 "}},
		"EmptyLeaf": {"an existing Secret stays among the objects, so that it is not pruned",
			func(c cluster) {
				c["ca"] = &apply.ForeignError{}
				a := c["a"].(*corev1.Secret).DeepCopy()
				a.Data = nil
				c["a"] = a
			}, []string{"ca 0 1", "Service", "a 0 ", "b 3 "}},
		"GoingAuthority": {"it is not replaced before it is gone",
			func(c cluster) { c["ca"] = &apply.StillDeletingError{} }, []string{"ca 0 1", "Service", "a 3 ", "b 3 "}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := maps.Clone(base)
			c.change(cluster)
			if diff := cmp.Diff(c.want, names(fill(t, New(cluster, at(&now))))); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

func TestFillFailsWhenASecretCannotBeRead(t *testing.T) {
	away := errors.New("away")
	now := noon
	i := New(cluster{"ca": away}, at(&now))
	if f, err := i.Fill(t.Context(), &corev1.ConfigMap{}, wanted()); !errors.Is(err, away) || f.Objects != nil {
		t.Errorf("got %v, %v", names(f), err)
	}
}

// The test damages a Secret and keeps its version, so that the damage goes unnoticed.
func TestFillParsesASecretOncePerVersion(t *testing.T) {
	now := noon
	c := cluster{}
	i := New(c, at(&now))
	c.apply(t, fill(t, i))
	due := fill(t, i).Due
	c.edit("a", crt, []byte("x"))
	if f := fill(t, i); len(f.Issued) != 0 || !f.Due.Equal(due) {
		t.Errorf("the plan is not cached: %v", f.Issued)
	}
	c["a"].(*corev1.Secret).ResourceVersion = "another"
	if f := fill(t, i); len(f.Issued) != 1 {
		t.Errorf("another version is not parsed: %v", f.Issued)
	}
	c.apply(t, fill(t, i))
	fill(t, i)
	now = due
	if f := fill(t, i); len(f.Issued) != 2 {
		t.Errorf("it is due and not parsed: %v", f.Issued)
	}
}

func TestFillKeepsObjectsWithoutARequest(t *testing.T) {
	now := noon
	all := []lifecycle.Object{&corev1.Service{}, &corev1.Secret{}}
	f, err := New(cluster{}, at(&now)).Fill(t.Context(), &corev1.ConfigMap{}, all)
	if err != nil || len(f.Objects) != 2 || f.Objects[1] != all[1] || !f.Due.IsZero() {
		t.Errorf("objects without a request change: %v, %v", f, err)
	}
}

func TestFillRefusesInvalidRequests(t *testing.T) {
	annotated := &corev1.ConfigMap{}
	annotated.Annotations = map[string]string{lifecycle.AnnotationCertificate: "{}"}
	broken := lifecycle.Certificate{}.Secret("s", nil)
	broken.Annotations[lifecycle.AnnotationCertificate] = "{"
	cases := map[string]struct {
		wanted lifecycle.Object
		says   string
	}{
		"NoAuthority": {lifecycle.Certificate{Authority: "x"}.Secret("s", nil), `authority called "x"`},
		"BadAddress":  {lifecycle.Certificate{IPAddresses: []string{"localhost"}}.Secret("s", nil), `"localhost" is not an IP address`},
		"NotASecret":  {annotated, "not a Secret"},
		"Unreadable":  {broken, "cannot be read"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := noon
			_, err := New(cluster{}, at(&now)).Fill(t.Context(), &corev1.ConfigMap{}, []lifecycle.Object{c.wanted})
			var invalid *RequestError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want it to say %s", err, c.says)
			}
		})
	}
}
