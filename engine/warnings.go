package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/governor-dev/governor/lifecycle"
)

// AdvicePath is where advice is served, as config/manager/webhook.yaml has it. It is
// one for all kinds: a webhook of its own for each could not be dropped again by
// the install of a later release, for the caBundle in it would belong to another
// field manager.
const AdvicePath = "/advise"

// router hands each question to those who know the kind.
type router struct {
	kinds sync.Map // of admission.Handler by schema.GroupVersionKind
}

// newRouter serves questions on the manager's webhook server.
func newRouter(mgr manager.Manager, path string) *router {
	d := &router{}
	mgr.GetWebhookServer().Register(path, &webhook.Admission{Handler: d})
	return d
}

// Handle implements admission.Handler.
func (d *router) Handle(ctx context.Context, req admission.Request) admission.Response {
	handler, ok := d.kinds.Load(schema.GroupVersionKind(req.Kind))
	if !ok {
		return admission.Allowed("")
	}
	return handler.(admission.Handler).Handle(ctx, req)
}

// warningHandler answers the API server's question about one object with warnings for
// the user. Every replica serves it. It always allows: a user must be able to
// change objects also when the operator has a bug, so whatever goes wrong here is
// logged and silent.
type warningHandler[T lifecycle.Resource, W any] struct {
	app        App[T, W]
	namespaces []string
	decoder    admission.Decoder
	// voices speak one after the other.
	voices []func(ctx context.Context, old, want T) []string
	// parting speaks of a deletion; nil says nothing.
	parting func(ctx context.Context, obj T, orphan bool) []string
}

// registerWebhooks serves the application's advice and previews, if the operator has webhooks.
func registerWebhooks[T lifecycle.Resource, W any](op *Operator, app App[T, W], ahead *forecaster[T, W]) error {
	if op.advice == nil {
		return nil
	}
	gvk, err := apiutil.GVKForObject(app.newObject(), op.mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("cannot advise on %s: %w", app.Name, err)
	}
	a := newWarningHandler(app, op.options.Namespaces, op.mgr.GetScheme())
	a.voices, a.parting = append(a.voices, ahead.warn), ahead.warnOfDeletion
	op.advice.kinds.Store(gvk, a)
	o := &previewHandler[T, W]{app: app, kind: gvk, namespaces: op.options.Namespaces, decoder: a.decoder, ahead: ahead, now: op.options.Now}
	op.previews.kinds.Store(gvk, o)
	for _, former := range app.FormerVersions {
		op.previews.kinds.Store(former.Kind, translated{former, o})
	}
	return nil
}

func newWarningHandler[T lifecycle.Resource, W any](app App[T, W], namespaces []string, scheme *runtime.Scheme) *warningHandler[T, W] {
	a := &warningHandler[T, W]{app: app, namespaces: namespaces, decoder: admission.NewDecoder(scheme)}
	if warnings := app.Abilities.Warnings; warnings != nil {
		a.voices = append(a.voices, func(_ context.Context, old, want T) []string { return warnings(old, want) })
	}
	return a
}

// Handle implements admission.Handler.
func (a *warningHandler[T, W]) Handle(ctx context.Context, req admission.Request) (answer admission.Response) {
	defer func() {
		if thrown := recover(); thrown != nil {
			panics.WithLabelValues(a.app.Name).Inc()
			logf.FromContext(ctx).Error(fmt.Errorf("%v", thrown), "panic while advising", "stack", string(debug.Stack()))
			answer = admission.Allowed("")
		}
	}()
	warnings, err := a.warnings(ctx, req)
	if err != nil {
		logf.FromContext(ctx).Error(err, "no advice about an object that cannot be read")
	}
	return admission.Allowed("").WithWarnings(warnings...)
}

func (a *warningHandler[T, W]) warnings(ctx context.Context, req admission.Request) ([]string, error) {
	if !concerned(a.namespaces, req) {
		return nil, nil
	}
	if req.Operation == admissionv1.Delete {
		return a.deletion(ctx, req)
	}
	want, err := a.decode(req.Object)
	if err != nil || deleting(want) {
		return nil, err
	}
	old, err := a.decode(req.OldObject)
	if err != nil || sameWish(req.Operation, old, want) {
		return nil, err
	}
	var said []string
	for _, voice := range a.voices {
		said = append(said, voice(ctx, old, want)...)
	}
	return said, nil
}

// deletion speaks of an object that is about to be deleted, once.
func (a *warningHandler[T, W]) deletion(ctx context.Context, req admission.Request) ([]string, error) {
	obj, err := a.decode(req.OldObject)
	if err != nil || a.parting == nil || any(obj) == any(*new(T)) || deleting(obj) {
		return nil, err
	}
	return a.parting(ctx, obj, orphans(req.Options.Raw, obj.GetFinalizers())), nil
}

// orphans reports whether a deletion leaves what belongs to the object. Options that do not say so leave it to the object's
// finalizers (apiserver, pkg/registry/generic/registry/store.go).
func orphans(options []byte, finalizers []string) bool {
	var o metav1.DeleteOptions
	if err := json.Unmarshal(options, &o); err != nil {
		return false
	}
	switch {
	case o.OrphanDependents != nil: //nolint:staticcheck // old clients send it
		return *o.OrphanDependents //nolint:staticcheck // the same
	case o.PropagationPolicy != nil:
		return *o.PropagationPolicy == metav1.DeletePropagationOrphan
	}
	chosen := slices.IndexFunc(finalizers, func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	return chosen >= 0 && finalizers[chosen] == metav1.FinalizerOrphanDependents
}

// concerned reports whether the operator of these namespaces will act on the object.
func concerned(namespaces []string, req admission.Request) bool {
	return len(namespaces) == 0 || slices.Contains(namespaces, req.Namespace)
}

// decode returns nil where there is no object: what was there before a creation.
func (a *warningHandler[T, W]) decode(raw runtime.RawExtension) (obj T, err error) {
	if len(raw.Raw) == 0 {
		return obj, nil
	}
	obj = a.app.newObject()
	return obj, a.decoder.DecodeRaw(raw, obj)
}

// sameWish reports whether an update leaves alone all that the user declares, as
// those of the operator itself do.
func sameWish(op admissionv1.Operation, old, want lifecycle.Object) bool {
	return op == admissionv1.Update && old.GetGeneration() == want.GetGeneration()
}
