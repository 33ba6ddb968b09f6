package caching

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/lifecycle"
)

// lister keeps with what it was asked.
type lister struct {
	client.Client
	options client.ListOptions
}

func (a *lister) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	a.options.ApplyOptions(opts)
	return nil
}

func TestIndexed(t *testing.T) {
	selecting := func(s string) client.MatchingLabelsSelector {
		selector, err := labels.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return client.MatchingLabelsSelector{Selector: selector}
	}
	cases := map[string]struct {
		reason string
		with   client.ListOption
		want   string
		kind   client.ObjectList // pods if nil
	}{
		"Instance": {"one instance is looked up", client.MatchingLabels{lifecycle.LabelInstance: "a", lifecycle.LabelApp: "x"}, InstanceIndex + "=a", nil},
		"Owned":    {"of a kind that is only owned, there is no index", client.MatchingLabels{lifecycle.LabelInstance: "a"}, "", &corev1.SecretList{}},
		"In":       {"of one", selecting(lifecycle.LabelInstance + " in (a)"), InstanceIndex + "=a", nil},
		"Two":      {"two are not in the index", selecting(lifecycle.LabelInstance + " in (a,b)"), "", nil},
		"Not":      {"nor all but one", selecting(lifecycle.LabelInstance + "!=a"), "", nil},
		"Other":    {"nor another label", client.MatchingLabels{lifecycle.LabelApp: "x"}, "", nil},
		"All":      {"everything is everything", client.InNamespace("n"), "", nil},
		"Owner":    {"a lookup by another index stays one", client.MatchingFields{"owner": "u"}, "owner=u", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := &lister{Client: clientfake.NewFakeClient()}
			watches := []client.Object{&corev1.Pod{}}
			if c.kind == nil {
				c.kind = &corev1.PodList{}
			}
			if err := IndexedBy(a, watches).List(t.Context(), c.kind, c.with); err != nil {
				t.Fatal(err)
			}
			got := ""
			if f := a.options.FieldSelector; f != nil {
				got = f.String()
			}
			if got != c.want {
				t.Errorf("%s: asked for %q, want %q", c.reason, got, c.want)
			}
		})
	}
}
