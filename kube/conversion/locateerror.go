package conversion

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/json"
)

// locateError adds the path of the first field that does not fit to the error of an
// unreadable object. Decoders name the field for some types only, and never the index in a
// list.
func locateError(raw []byte, err error, read func(raw []byte) error) error {
	var whole map[string]any
	if json.Unmarshal(raw, &whole) != nil {
		return err
	}
	path, fault := findMisfit("", whole, func(part any) error {
		raw, err := json.Marshal(part)
		if err != nil {
			return err
		}
		return read(raw)
	})
	if fault == nil || path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path[1:], fault)
}

// findMisfit returns the path of the first part of the node that does not fit, and its error.
// It tests each part alone, inside the otherwise empty objects and lists that lead to it.
func findMisfit(path string, node any, fits func(any) error) (string, error) {
	fault := fits(node)
	if fault == nil {
		return "", nil
	}
	for _, p := range parts(node) {
		if fits(p.empty) != nil {
			break // the node itself has the wrong type
		}
		where, err := findMisfit(path+p.name, p.value, func(v any) error { return fits(p.around(v)) })
		if err != nil {
			return where, err
		}
	}
	return path, fault
}

// part is one value in an object or a list.
type part struct {
	name   string // the step to it in a path
	value  any
	empty  any           // its empty parent
	around func(any) any // its parent with no other part in it
}

func parts(node any) []part {
	var all []part
	switch node := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			around := func(v any) any { return map[string]any{key: v} }
			all = append(all, part{"." + key, node[key], map[string]any{}, around})
		}
	case []any:
		for i, item := range node {
			around := func(v any) any { return []any{v} }
			all = append(all, part{fmt.Sprintf("[%d]", i), item, []any{}, around})
		}
	}
	return all
}
