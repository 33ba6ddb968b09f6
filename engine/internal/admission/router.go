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

// maxQuestions is how many questions are answered at once. Every pod of the cluster may ask, and a plan of a large object
// takes memory and time of the operator.
const maxQuestions = 16

// tooBusy is the warning of a question that is not answered.
const tooBusy = "Governor answers too many questions at once, and did not look at this one."

// Router hands each question to the handler of its kind.
type Router struct {
	kinds sync.Map // of admission.Handler by schema.GroupVersionKind
	slots chan struct{}
}

// NewRouter serves questions on the manager's webhook server.
func NewRouter(mgr manager.Manager, path string) *Router {
	d := newRouter()
	mgr.GetWebhookServer().Register(path, &webhook.Admission{Handler: d})
	return d
}

func newRouter() *Router { return &Router{slots: make(chan struct{}, maxQuestions)} }

// Handle implements admission.Handler. It allows every request.
func (d *Router) Handle(ctx context.Context, req admission.Request) admission.Response {
	handler, ok := d.kinds.Load(schema.GroupVersionKind(req.Kind))
	if !ok {
		return admission.Allowed("")
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
		return handler.(admission.Handler).Handle(ctx, req)
	default:
		return admission.Allowed("").WithWarnings(tooBusy)
	}
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
