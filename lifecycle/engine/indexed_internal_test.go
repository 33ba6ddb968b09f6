package engine

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	}{
		"Instance": {"one instance is looked up", client.MatchingLabels{lifecycle.LabelInstance: "a", lifecycle.LabelApp: "x"}, instanceIndex + "=a"},
		"In":       {"of one", selecting(lifecycle.LabelInstance + " in (a)"), instanceIndex + "=a"},
		"Two":      {"two are not in the index", selecting(lifecycle.LabelInstance + " in (a,b)"), ""},
		"Not":      {"nor all but one", selecting(lifecycle.LabelInstance + "!=a"), ""},
		"Other":    {"nor another label", client.MatchingLabels{lifecycle.LabelApp: "x"}, ""},
		"All":      {"everything is everything", client.InNamespace("n"), ""},
		"Owner":    {"who looks up by another index does that", client.MatchingFields{"owner": "u"}, "owner=u"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := &lister{}
			if err := (indexed{a}).List(t.Context(), &corev1.PodList{}, c.with); err != nil {
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
