package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Translated asks about an object in an earlier version as if it were written in the
// present one. The answer is an annotation, which has the same place in both.
type Translated struct {
	// Kind and Convert are those of a former version of the engine.
	Kind    schema.GroupVersionKind
	Convert func(raw []byte) ([]byte, error)
	Next    admission.Handler
}

// Handle implements admission.Handler. The object is completed before it is converted:
// a conversion may need the status, which the API server adds after it asks here.
func (t Translated) Handle(ctx context.Context, req admission.Request) admission.Response {
	if wish, err := completed(req.Object.Raw, req.OldObject.Raw); err == nil {
		req.Object = runtime.RawExtension{Raw: wish}
	}
	for _, obj := range []*runtime.RawExtension{&req.Object, &req.OldObject} {
		if len(obj.Raw) == 0 {
			continue
		}
		raw, err := t.Convert(obj.Raw)
		if err != nil {
			logf.FromContext(ctx).Error(err, "no preview of an object that cannot be converted")
			return admission.Allowed("").WithWarnings(fmt.Sprintf("There is no preview: the object cannot be converted from %s: %v.", t.Kind.GroupVersion(), err))
		}
		*obj = runtime.RawExtension{Raw: raw}
	}
	return t.Next.Handle(ctx, req)
}
