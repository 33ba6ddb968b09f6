package engine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/governor-dev/governor/engine/internal/admission"
	"github.com/governor-dev/governor/engine/internal/forecast"
	"github.com/governor-dev/governor/lifecycle"
)

// AdvicePath is where advice is served, as config/manager/webhook.yaml has it. It is
// one for all kinds: a webhook of its own for each could not be dropped again by
// the install of a later release, for the caBundle in it would belong to another
// field manager.
const AdvicePath = "/advise"

// PreviewPath is where previews are served, as config/manager/webhook.yaml has it.
const PreviewPath = "/preview"

// registerWebhooks serves the application's advice and previews, if the operator has webhooks.
func registerWebhooks[T lifecycle.Resource, W any](op *Operator, app App[T, W], ahead *forecast.Forecaster[T, W]) error {
	if op.advice == nil {
		return nil
	}
	gvk, err := apiutil.GVKForObject(app.newObject(), op.mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("cannot advise on %s: %w", app.Name, err)
	}
	kind := app.admitted(gvk, op.options.Namespaces, op.mgr.GetScheme())
	op.advice.Serve(gvk, &admission.Warnings[T]{Kind: kind, Voices: append(app.voices(), ahead.Warn), Parting: ahead.WarnOfDeletion})
	previews := &admission.Previews[T]{Kind: kind, Retain: app.Abilities.Retain, Report: ahead.Report, Now: op.options.Now}
	op.previews.Serve(gvk, previews)
	for _, former := range app.FormerVersions {
		op.previews.Serve(former.Kind, &admission.Translated{Kind: former.Kind, Convert: former.Convert, Next: previews})
	}
	return nil
}

// admitted is the application's kind as requests of the API server have it.
func (a App[T, W]) admitted(gvk schema.GroupVersionKind, namespaces []string, scheme *runtime.Scheme) admission.Kind[T] {
	decoder := ctrladmission.NewDecoder(scheme)
	return admission.Kind[T]{App: a.Name, GVK: gvk, Namespaces: namespaces, Decode: func(raw runtime.RawExtension) (T, error) { return a.decode(decoder, raw) }}
}

// voices are what the application itself warns of.
func (a App[T, W]) voices() []func(ctx context.Context, old, want T) []string {
	warnings := a.Abilities.Warnings
	if warnings == nil {
		return nil
	}
	return []func(ctx context.Context, old, want T) []string{
		func(_ context.Context, old, want T) []string { return warnings(old, want) },
	}
}

// forgetWebhooks ends the advice and previews of a kind.
func (op *Operator) forgetWebhooks(kind schema.GroupVersionKind, former []FormerVersion) {
	if op.advice == nil {
		return
	}
	op.advice.Forget(kind)
	op.previews.Forget(kind)
	for _, f := range former {
		op.previews.Forget(f.Kind)
	}
}
