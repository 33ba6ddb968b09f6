package engine

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// old is a version in which generations were called ages.
type old struct {
	Age  int64  `json:"age"`
	Name string `json:"name"`
}

func toFake(o *old) (*fake, error) {
	if o.Age < 0 {
		return nil, errors.New("the age is negative")
	}
	return generation(o.Age).with(func(f *fake) { f.Name = o.Name }), nil
}

// A request in an earlier version is answered as if it were in the present one. An object that
// cannot be converted is refused with the reason.
func TestEarlierVersionsAreTranslated(t *testing.T) {
	former := fakeKind
	former.Version = "v1alpha1"
	present := newWarningHandler(App[*fake, struct{}]{Name: "fake", Abilities: warning(talkative)}, nil, fakeScheme())
	d := &router{}
	d.kinds.Store(former, translated{ConvertFormer(former, toFake), present})
	ask := func(was, is any) admission.Response {
		req := asked(t, was, is)
		req.Kind.Group, req.Kind.Version, req.Kind.Kind = former.Group, former.Version, former.Kind
		return d.Handle(t.Context(), req)
	}
	if got := ask(old{Age: 1}, old{Age: 2}).Warnings; len(got) != 1 || got[0] != "from 1 to 2" {
		t.Errorf("a change: %q", got)
	}
	if got := ask(nil, old{Age: 7}).Warnings; len(got) != 1 || got[0] != "new 7" {
		t.Errorf("a creation: %q", got)
	}
	for name, is := range map[string]any{"refused": old{Age: -1}, "garbage": "an object"} {
		answer := ask(nil, is)
		if len(answer.Warnings) != 1 || !answer.Allowed {
			t.Errorf("%s: %v", name, answer)
		}
	}
}
