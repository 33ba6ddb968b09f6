// Package admission answers the API server's webhooks with warnings and previews. It never refuses a request.
package admission

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/governor-dev/governor/lifecycle"
)

// Router hands each question to those who know the kind.
type Router struct {
	kinds sync.Map // of admission.Handler by schema.GroupVersionKind
}

// NewRouter serves questions on the manager's webhook server.
func NewRouter(mgr manager.Manager, path string) *Router {
	d := &Router{}
	mgr.GetWebhookServer().Register(path, &webhook.Admission{Handler: d})
	return d
}

// Handle implements admission.Handler.
func (d *Router) Handle(ctx context.Context, req admission.Request) admission.Response {
	handler, ok := d.kinds.Load(schema.GroupVersionKind(req.Kind))
	if !ok {
		return admission.Allowed("")
	}
	return handler.(admission.Handler).Handle(ctx, req)
}

// Serve answers questions about the kind with the handler.
func (d *Router) Serve(kind schema.GroupVersionKind, h admission.Handler) { d.kinds.Store(kind, h) }

// Forget ends that.
func (d *Router) Forget(kind schema.GroupVersionKind) { d.kinds.Delete(kind) }

// Kind is the kind of an application's objects, as requests have them.
type Kind[T lifecycle.Resource] struct {
	App string
	GVK schema.GroupVersionKind
	// Namespaces are those of the operator; empty means all.
	Namespaces []string
	Decode     func(raw runtime.RawExtension) (T, error)
}

// concerns reports whether the operator will act on the object.
func (k Kind[T]) concerns(req admission.Request) bool {
	return len(k.Namespaces) == 0 || slices.Contains(k.Namespaces, req.Namespace)
}

func deleting(obj lifecycle.Object) bool { return obj.GetDeletionTimestamp() != nil }
