package engine

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FormerVersion is an earlier version of an application's kind, which users still write.
type FormerVersion struct {
	// Kind is the version with the group and the kind.
	Kind schema.GroupVersionKind
	// Convert returns an object of that version, both as JSON, as one of the version
	// that the application is registered for.
	Convert func(raw []byte) ([]byte, error)
}

// ConvertFormer returns the earlier version of a kind that the function converts from, as
// a conversion webhook does.
func ConvertFormer[Old, New any](kind schema.GroupVersionKind, convert func(*Old) (*New, error)) FormerVersion {
	return FormerVersion{Kind: kind, Convert: func(raw []byte) ([]byte, error) {
		old := new(Old)
		if err := json.Unmarshal(raw, old); err != nil {
			return nil, err
		}
		present, err := convert(old)
		if err != nil {
			return nil, err
		}
		return json.Marshal(present)
	}}
}
