package admission

import (
	"encoding/json"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/governor-dev/governor/engine/internal/enginetest"
)

// old is a version in which generations were called ages.
type old struct {
	Age  int64  `json:"age"`
	Name string `json:"name"`
}

func toFake(o *old) (*enginetest.Object, error) {
	if o.Age < 0 {
		return nil, errors.New("the age is negative")
	}
	return with(generation(o.Age), func(f *enginetest.Object) { f.Name = o.Name }), nil
}

// convert converts an old object.
func convert(raw []byte) ([]byte, error) {
	o := &old{}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, err
	}
	f, err := toFake(o)
	if err != nil {
		return nil, err
	}
	return json.Marshal(f)
}

// A request in an earlier version is answered as if it were in the present one. An object that
// cannot be converted is refused with the reason.
func TestEarlierVersionsAreTranslated(t *testing.T) {
	former := enginetest.Kind
	former.Version = "v1alpha1"
	present := advice(talkative)
	d := newRouter()
	d.Serve(former, &Translated{Kind: former, Convert: convert, Next: present})
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
