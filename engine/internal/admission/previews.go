package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/hold"
	"github.com/governor-dev/governor/engine/internal/metrics"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

const (
	// longLook is how long a preview may take: less than API servers wait for it, so
	// that the user hears what went wrong.
	longLook = 4 * time.Second
	// roomy is how long a preview may be: an object may have 256 KiB of annotations.
	roomy = 128 << 10
)

// Previews answers a dry run that asks for a preview, see [lifecycle.AnnotationPreview],
// with the preview in place of the question. Every replica serves it. It never touches
// a request that would be stored, and always allows.
type Previews[T lifecycle.Resource] struct {
	Kind[T]

	// Retain is that of lifecycle.Abilities; nil if all fields can be set back.
	Retain func(now, earlier T) []string
	Report func(ctx context.Context, now, want T) preview.Report
	Now    func() time.Time
}

// Handle implements admission.Handler.
func (o *Previews[T]) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.DryRun == nil || !*req.DryRun || !o.concerns(req) {
		return admission.Allowed("")
	}
	q, err := o.question(req)
	if err != nil {
		logf.FromContext(ctx).Error(err, "no preview of an object that cannot be read")
		return admission.Allowed("").WithWarnings("There is no preview: the object cannot be read.")
	}
	switch q.asks {
	case "":
		return admission.Allowed("")
	case preview.Update, preview.Delete:
		return answer(o.foretell(ctx, q))
	case preview.Rollback:
		if o.GVK == schema.GroupVersionKind(req.Kind) { // revisions are written in the present version
			return o.rollback(ctx, q)
		}
		return admission.Allowed("").WithWarnings("There is no preview: a rollback is declared in " + o.GVK.Version + ".")
	}
	return admission.Allowed("").WithWarnings(fmt.Sprintf("There is no preview: the annotation %s must be %s, %s or %s.",
		lifecycle.AnnotationPreview, preview.Update, preview.Delete, preview.Rollback))
}

// rollback answers with the report, and with the spec that can be declared.
func (o *Previews[T]) rollback(ctx context.Context, q question[T]) admission.Response {
	if o.Retain == nil {
		return answer(o.foretell(ctx, q))
	}
	kept := o.Retain(q.now, q.want)
	report := o.foretell(ctx, q)
	report.Kept = kept
	response := answer(report)
	if len(kept) == 0 {
		return response
	}
	spec, _, err := revision.SpecOf(q.want)
	if err != nil {
		return admission.Allowed("").WithWarnings("There is no preview: " + err.Error())
	}
	response.Patches = append(response.Patches, jsonpatch.NewOperation("replace", "/spec", spec))
	return response
}

// answer replaces the question.
func answer(r preview.Report) admission.Response {
	raw, err := r.Encode(roomy)
	if err != nil {
		return admission.Allowed("").WithWarnings("There is no preview: " + err.Error())
	}
	path := "/metadata/annotations/" + strings.ReplaceAll(lifecycle.AnnotationPreview, "/", "~1")
	return admission.Patched("", jsonpatch.NewOperation("replace", path, raw))
}

// question is what is asked about the object.
type question[T any] struct {
	asks string
	// now is the object as it is, or as it would be created; want as it would be.
	now, want T
}

func (o *Previews[T]) question(req admission.Request) (q question[T], err error) {
	wish, err := completed(req.Object.Raw, req.OldObject.Raw)
	if err != nil {
		return q, err
	}
	if q.want, err = o.decode(wish); err != nil {
		return q, err
	}
	q.asks = q.want.GetAnnotations()[lifecycle.AnnotationPreview]
	delete(q.want.GetAnnotations(), lifecycle.AnnotationPreview)
	q.now = q.want
	if len(req.OldObject.Raw) > 0 {
		q.now, err = o.decode(req.OldObject.Raw)
	}
	if err == nil && len(req.OldObject.Raw) > 0 && !hold.SameSpec(q.now, q.want) {
		q.want.SetGeneration(q.now.GetGeneration() + 1) // what is known of the present generation is not about this one
	}
	if q.asks == preview.Delete {
		q.want = q.now.DeepCopyObject().(T)
		q.want.SetDeletionTimestamp(new(metav1.NewTime(o.Now())))
		q.now = q.want // an object that is being deleted is observed differently
	}
	return q, err
}

func (o *Previews[T]) decode(raw []byte) (T, error) {
	return o.Decode(runtime.RawExtension{Raw: raw})
}

// completed is the object with what the API server puts into it later than it asks
// here: the status and the identity that it has already.
func completed(object, old []byte) ([]byte, error) {
	var is, was map[string]any
	if err := json.Unmarshal(object, &is); err != nil {
		return nil, err
	}
	delete(is, "status")
	if len(old) == 0 {
		return json.Marshal(is)
	}
	if err := json.Unmarshal(old, &was); err != nil {
		return nil, err
	}
	if status, ok := was["status"]; ok {
		is["status"] = status
	}
	to, _ := is["metadata"].(map[string]any)
	from, _ := was["metadata"].(map[string]any)
	for _, field := range []string{"uid", "creationTimestamp", "deletionTimestamp", "generation"} {
		if value, ok := from[field]; ok && to != nil {
			to[field] = value
		}
	}
	return json.Marshal(is)
}

// foretell answers, also when the rules fail on the object.
func (o *Previews[T]) foretell(ctx context.Context, q question[T]) (r preview.Report) {
	defer func() {
		if thrown := recover(); thrown != nil {
			metrics.Panics.WithLabelValues(o.App).Inc()
			logf.FromContext(ctx).Error(fmt.Errorf("%v", thrown), "panic in a preview", "stack", string(debug.Stack()))
			r = preview.Terminal(explain.Panic(thrown))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, longLook)
	defer cancel()
	return o.Report(ctx, q.now, q.want)
}
