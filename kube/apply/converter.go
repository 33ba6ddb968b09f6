package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/spec3"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// schemaTimeout limits one read of schemas. A comparison has no context of its own.
const schemaTimeout = 10 * time.Second

// CompareError reports that an object could not be compared with its declaration. No write
// was sent.
type CompareError struct {
	Kind string
	Name string
	Err  error
}

// Error implements error.
func (e *CompareError) Error() string {
	return fmt.Sprintf("%s %q cannot be compared with its declaration: %v", e.Kind, e.Name, e.Err)
}

// Unwrap returns the cause.
func (e *CompareError) Unwrap() error { return e.Err }

// converter converts objects to typed values by their schemas. The schemas of built-in
// kinds are compiled in. It reads those of custom resources from the API server on demand.
type converter struct {
	managedfields.TypeConverter
	schemas openapi.ClientWithContext
	custom  sync.Map // of customTypes by schema.GroupVersion
}

// customTypes are the types of one group version. The URL changes when a schema does.
type customTypes struct {
	managedfields.TypeConverter
	url string
}

// newConverter returns a converter for the types of the scheme.
func newConverter(scheme *runtime.Scheme, schemas openapi.ClientWithContext) *converter {
	return &converter{TypeConverter: applyconfigurations.NewTypeConverter(scheme), schemas: schemas}
}

// ObjectToTyped implements managedfields.TypeConverter. It tries an object that does not
// fit again with the newest schema: the definition may have changed since the last read.
func (c *converter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if clientgoscheme.Scheme.Recognizes(gvk) {
		return c.TypeConverter.ObjectToTyped(obj, opts...)
	}
	known, _ := c.custom.Load(gvk.GroupVersion())
	before, ok := known.(customTypes)
	if ok {
		if value, err := before.ObjectToTyped(obj, opts...); err == nil {
			return value, nil
		}
	}
	now, err := c.read(gvk.GroupVersion(), before)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s cannot be read: %w", gvk.GroupKind(), err)
	}
	c.custom.Store(gvk.GroupVersion(), now)
	return now.ObjectToTyped(obj, opts...)
}

// read returns the types of a group version as the API server publishes them. It returns
// before if the API server still publishes the same document.
func (c *converter) read(gv schema.GroupVersion, before customTypes) (customTypes, error) {
	ctx, cancel := context.WithTimeout(context.Background(), schemaTimeout)
	defer cancel()
	paths, err := c.schemas.PathsWithContext(ctx)
	if err != nil {
		return before, err
	}
	document, ok := paths["apis/"+gv.String()]
	if !ok {
		return before, fmt.Errorf("the API server publishes none for %s", gv)
	}
	url := document.ServerRelativeURL()
	if url == before.url {
		return before, nil
	}
	raw, err := document.SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err != nil {
		return before, err
	}
	types, err := parseTypes(raw)
	return customTypes{types, url}, err
}

func parseTypes(raw []byte) (managedfields.TypeConverter, error) {
	var document spec3.OpenAPI
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	if document.Components == nil {
		return nil, fmt.Errorf("the document has no schemas")
	}
	return managedfields.NewTypeConverter(document.Components.Schemas, false)
}
