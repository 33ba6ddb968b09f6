package apply

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
)

// published is an API server that publishes one kind with the given fields.
type published struct {
	fields    []string
	down      bool
	downloads int
}

func (p *published) PathsWithContext(context.Context) (map[string]openapi.GroupVersionWithContext, error) {
	if p.down {
		return nil, errors.New("unavailable")
	}
	return map[string]openapi.GroupVersionWithContext{"apis/example.com/v1": p}, nil
}

func (p *published) ServerRelativeURL() string { return fmt.Sprint(p.fields) }

func (p *published) SchemaWithContext(context.Context, string) ([]byte, error) {
	p.downloads++
	var properties string
	for _, field := range p.fields {
		properties += fmt.Sprintf(`,%q:{"type":"string"}`, field)
	}
	return fmt.Appendf(nil, `{"openapi":"3.0.0","components":{"schemas":{"com.example.v1.Thing":{"type":"object",
		"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"}%s},
		"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Thing"}]}}}}`, properties), nil
}

func thing(fields ...string) *unstructured.Unstructured {
	content := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}
	for _, field := range fields {
		content[field] = "x"
	}
	return &unstructured.Unstructured{Object: content}
}

// The converter reads a schema on first use, and again only after it has changed.
func TestConverterReadsSchemasOnce(t *testing.T) {
	api := &published{fields: []string{"size"}}
	c := newConverter(scheme.Scheme, api)
	steps := []struct {
		reason    string
		change    func()
		fields    []string
		fits      bool
		downloads int
	}{
		{"the first object needs the schema", func() {}, []string{"size"}, true, 1},
		{"the second object uses the cached schema", func() {}, []string{"size"}, true, 1},
		{"a field that is not published does not fit", func() {}, []string{"color"}, false, 1},
		{"the definition has changed", func() { api.fields = append(api.fields, "color") }, []string{"color"}, true, 2},
		{"a known schema needs no API server", func() { api.down = true }, []string{"size"}, true, 2},
		{"an unknown field needs the API server", func() {}, []string{"shape"}, false, 2},
	}
	for _, step := range steps {
		step.change()
		_, err := c.ObjectToTyped(thing(step.fields...))
		if (err == nil) != step.fits || api.downloads != step.downloads {
			t.Errorf("%s: error %v, %d downloads", step.reason, err, api.downloads)
		}
	}
}

// A kind that the API server does not publish is an error, not a panic.
func TestConverterRejectsUnpublishedKind(t *testing.T) {
	c := newConverter(scheme.Scheme, &published{})
	other := thing()
	other.SetAPIVersion("example.org/v1")
	if _, err := c.ObjectToTyped(other); err == nil {
		t.Error("a group that is not published fits")
	}
	other.SetAPIVersion("example.com/v1")
	other.SetKind("Other")
	if _, err := c.ObjectToTyped(other); err == nil {
		t.Error("a kind that is not published fits")
	}
}
