package engine

import (
	"errors"
	"testing"
)

// A former version is converted by the function of the author, from JSON to JSON.
func TestConvertFormer(t *testing.T) {
	type old struct {
		Age int64 `json:"age"`
	}
	type present struct {
		Generation int64 `json:"generation"`
	}
	v := ConvertFormer(fakeKind, func(o *old) (*present, error) {
		if o.Age < 0 {
			return nil, errors.New("the age is negative")
		}
		return &present{o.Age}, nil
	})
	if got, err := v.Convert([]byte(`{"age":7}`)); err != nil || string(got) != `{"generation":7}` {
		t.Errorf("%s, %v", got, err)
	}
	for _, raw := range []string{`{"age":-1}`, `"an object"`} {
		if got, err := v.Convert([]byte(raw)); err == nil {
			t.Errorf("%s becomes %s", raw, got)
		}
	}
}
