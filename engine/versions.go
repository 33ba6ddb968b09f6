package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
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

// translated asks about an object in an earlier version as if it were written in the
// present one. The answer is an annotation, which has the same place in both.
type translated struct {
	FormerVersion

	next admission.Handler
}

// Handle implements admission.Handler. The object is completed before it is converted:
// a conversion may need the status, which the API server adds after it asks here.
func (t translated) Handle(ctx context.Context, req admission.Request) admission.Response {
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
	return t.next.Handle(ctx, req)
}
