package engine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

func coreScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := fakeScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// A kind that is there twice would have two selections of its objects in one cache.
func TestRegistrationChecksKinds(t *testing.T) {
	pods := Watch{Object: &corev1.Pod{}}
	cases := map[string]struct {
		owns    []client.Object
		watches []Watch
		want    string
	}{
		"Right":        {[]client.Object{&corev1.ConfigMap{}}, []Watch{pods}, ""},
		"WatchedTwice": {nil, []Watch{pods, {Object: &corev1.Pod{}, MetadataOnly: true}}, "Watches has the kind Pod, which is in Watches already"},
		"OwnedToo":     {[]client.Object{&corev1.Pod{}}, []Watch{pods}, "Watches has the kind Pod, which is in Owns already"},
		"Itself":       {[]client.Object{&fake{}}, nil, "Owns has the kind " + fakeKind.GroupKind().String() + ", which is in the application itself already"},
		"Unknown":      {nil, []Watch{{Object: &metav1.PartialObjectMetadata{}}}, "Watches: "},
		"Empty":        {nil, []Watch{{}}, "Watches has an entry without an object"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := App[*fake, struct{}]{Owns: c.owns, Watches: c.watches}.checkKinds(coreScheme(t))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWatchSelectsAndTransforms(t *testing.T) {
	mine := labels.Set{lifecycle.LabelApp: "a"}
	if s := (Watch{}).selector("a"); !s.Matches(mine) || s.Matches(labels.Set{}) {
		t.Errorf("without a selector, %s selects", s)
	}
	if s := (Watch{Selector: labels.Everything()}).selector("a"); !s.Matches(labels.Set{}) {
		t.Errorf("everything is %s", s)
	}
	pod := func() *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: "high", NodeName: "n"}}
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		return p
	}
	for name, c := range map[string]struct {
		transform func(client.Object)
		want      corev1.PodSpec
	}{
		"Default": {nil, corev1.PodSpec{NodeName: "n"}},
		"Whole":   {func(client.Object) {}, pod().Spec},
		"Own":     {func(o client.Object) { o.(*corev1.Pod).Spec.NodeName = "" }, corev1.PodSpec{PriorityClassName: "high"}},
	} {
		got, err := Watch{Transform: c.transform}.transform()(pod())
		p := got.(*corev1.Pod)
		if err != nil || p.ManagedFields != nil || p.Spec.NodeName != c.want.NodeName || p.Spec.PriorityClassName != c.want.PriorityClassName {
			t.Errorf("%s: %v %+v", name, err, p)
		}
	}
}

func TestMetadataOnlyWatchAsksForMetadata(t *testing.T) {
	all, err := App[*fake, struct{}]{Watches: []Watch{{Object: &corev1.Secret{}, MetadataOnly: true}, {Object: &corev1.Pod{}}}}.watchedObjects(coreScheme(t))
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := all[0].(*metav1.PartialObjectMetadata); !ok || m.Kind != "Secret" || m.APIVersion != "v1" {
		t.Errorf("got %#v", all[0])
	}
	if _, ok := all[1].(*corev1.Pod); !ok {
		t.Errorf("got %#v", all[1])
	}
}
