package enforce

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// Bypassed is the history's record of policies that did not count; nil if all counted.
func (k *Kind) Bypassed(ctx context.Context, obj client.Object, v policy.Verdict) *history.Bypass {
	if len(v.Bypassed) == 0 {
		return nil
	}
	b := &history.Bypass{
		Reason: strings.TrimSpace(obj.GetAnnotations()[lifecycle.AnnotationBypass]), By: obj.GetAnnotations()[lifecycle.AnnotationBypassBy],
	}
	if b.By == "" {
		b.By = k.annotator(ctx, obj)
	}
	for _, r := range v.Bypassed {
		b.Policies = append(b.Policies, r.Policy)
	}
	return b
}

// annotator is the field manager that wrote the annotation, for an object whose annotation
// names no user: it is older than the admission policy that asks for the name. The cache
// has no field managers. The result is empty if the API server does not answer.
func (k *Kind) annotator(ctx context.Context, obj client.Object) string {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(k.GVK)
	if err := k.Live.Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil {
		return ""
	}
	for _, f := range now.ManagedFields {
		if f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:`+lifecycle.AnnotationBypass+`"`) {
			return f.Manager
		}
	}
	return ""
}
