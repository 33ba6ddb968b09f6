package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/governor-dev/governor/engine/internal/forecast"
	"github.com/governor-dev/governor/engine/internal/metrics"
	"github.com/governor-dev/governor/lifecycle"
)

// Warnings answers the API server's question about one object with warnings for
// the user. Every replica serves it. It always allows: a user must be able to
// change objects also when the operator has a bug. Whatever goes wrong here is
// logged, and the warning says that it is not known what happens.
type Warnings[T lifecycle.Resource] struct {
	Kind[T]

	// Voices speak one after the other.
	Voices []func(ctx context.Context, old, want T) []string
	// Parting speaks of a deletion; nil says nothing.
	Parting func(ctx context.Context, obj T, orphan bool) []string
}

// Handle implements admission.Handler.
func (a *Warnings[T]) Handle(ctx context.Context, req admission.Request) (answer admission.Response) {
	defer func() {
		if thrown := recover(); thrown != nil {
			metrics.Panics.WithLabelValues(a.App).Inc()
			logf.FromContext(ctx).Error(fmt.Errorf("%v", thrown), "panic while advising", "stack", string(debug.Stack()))
			answer = admission.Allowed("").WithWarnings(unknown(req))
		}
	}()
	warnings, err := a.warnings(ctx, req)
	if err != nil {
		logf.FromContext(ctx).Error(err, "no advice about an object that cannot be read")
		warnings = []string{unknown(req)}
	}
	return admission.Allowed("").WithWarnings(warnings...)
}

// unknown is the warning if no other can be had.
func unknown(req admission.Request) string {
	if req.Operation == admissionv1.Delete {
		return forecast.DeletionUnknown
	}
	return forecast.StepsUnknown
}

func (a *Warnings[T]) warnings(ctx context.Context, req admission.Request) ([]string, error) {
	if !a.concerns(req) {
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
	for _, voice := range a.Voices {
		said = append(said, voice(ctx, old, want)...)
	}
	return said, nil
}

// deletion speaks of an object that is about to be deleted, once.
func (a *Warnings[T]) deletion(ctx context.Context, req admission.Request) ([]string, error) {
	obj, err := a.decode(req.OldObject)
	if err != nil || a.Parting == nil || any(obj) == any(*new(T)) || deleting(obj) {
		return nil, err
	}
	return a.Parting(ctx, obj, orphans(req.Options.Raw, obj.GetFinalizers())), nil
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

// decode returns nil where there is no object: what was there before a creation.
func (a *Warnings[T]) decode(raw runtime.RawExtension) (obj T, err error) {
	if len(raw.Raw) == 0 {
		return obj, nil
	}
	return a.Decode(raw)
}

// sameWish reports whether an update leaves alone all that the user declares, as
// those of the operator itself do.
func sameWish(op admissionv1.Operation, old, want lifecycle.Object) bool {
	return op == admissionv1.Update && old.GetGeneration() == want.GetGeneration()
}
