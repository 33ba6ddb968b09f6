package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	wholejson "k8s.io/apimachinery/pkg/util/json" // whole numbers stay whole
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

const (
	// RollbackManager is the field manager of a spec that the operator has put back.
	RollbackManager = "governor-rollback"
	// rollback is the name of that step.
	rollback = "Rollback"
	// annotationRolledBack is written with the spec that is put back, in one write, so
	// that no crash can part them.
	annotationRolledBack = "governor.dev/rolled-back"
)

// rollbackNote is the note about a spec that was put back. It is about the object only as
// long as that has this spec.
type rollbackNote struct {
	// Failed and To are the revisions, FailedSpec and Spec their digests.
	Failed     int64  `json:"failed"`
	FailedSpec string `json:"failedSpec"`
	To         int64  `json:"to"`
	Spec       string `json:"spec"`
	// Reason is how the failure showed.
	Reason string `json:"reason"`
	// Kept says which fields have another value than in revision To, and why.
	Kept []string `json:"kept,omitempty"`
}

// except names the fields that a rollback kept; empty if it kept none.
func (n rollbackNote) except() string {
	if len(n.Kept) == 0 {
		return ""
	}
	return ", except that " + strings.Join(n.Kept, " and ")
}

func rollbackNoteOf(obj lifecycle.Object) (n rollbackNote, ok bool) {
	raw := obj.GetAnnotations()[annotationRolledBack]
	return n, raw != "" && json.Unmarshal([]byte(raw), &n) == nil
}

// accepted reports whether the spec is to be stored as a revision: a step was taken for it or
// refused, or it has failed, or everything is as declared.
func (r *result) accepted() bool {
	if !r.decided || r.paused || deleting(r.object) {
		return false
	}
	return r.taken != nil || len(r.refusals) > 0 || r.decision.Failed || r.decision.Outcome == lifecycle.OutcomeSettled
}

// remember keeps the accepted spec as a revision, once, and that it has settled, once;
// where drift is only reported also what is provided for it, when that is another.
func (e *engine[T, W]) remember(ctx context.Context, r *reconciliation[T, W]) error {
	if !r.accepted() {
		return nil
	}
	settled := r.decision.Outcome == lifecycle.OutcomeSettled
	_, err := e.revisions.Save(ctx, r.obj, r.author, settled)
	if err != nil || !settled || r.spared == nil {
		return err
	}
	return e.revisions.RecordApplied(ctx, r.obj, r.spared)
}

// undo puts the last spec that worked back where a policy says so of one that failed. It
// does so once, and never of a spec that was put back itself: what then fails halts.
func (e *engine[T, W]) undo(ctx context.Context, r *reconciliation[T, W]) {
	if !r.decision.Failed && !r.decision.Suspect || deleting(r.obj) {
		return
	}
	by := e.rollsBack(r.obj)
	if len(by) == 0 {
		return
	}
	failed, err := e.changeFailed(ctx, r)
	if err == nil && !failed {
		return
	}
	var w rollbackPlan[T]
	if err == nil {
		w, err = e.planRollback(ctx, r)
	}
	if err == nil && w.objection == "" {
		err = e.goBack(ctx, r, w, strings.Join(by, ", "))
	}
	if apierrors.IsInvalid(err) { // a field that cannot be set back, and that the planner does not know
		w.objection = fmt.Sprintf("the API server refuses revision %d: %s.", w.note.To, statement(err))
		e.rollbackTargets.Refuse(r.key, r.obj.GetGeneration(), w.objection)
		err = nil
	}
	switch {
	case err != nil:
		r.cause, r.decision = err, explain(err)
	case w.objection != "":
		r.decision.Message += fmt.Sprintf(" It halts, although the policy %s wants the last spec that worked: %s", strings.Join(by, ", "), w.objection)
	}
}

// changeFailed reports whether the present spec does not work. One that once worked is not to
// blame for what the planner only suspects.
func (e *engine[T, W]) changeFailed(ctx context.Context, r *reconciliation[T, W]) (bool, error) {
	if r.decision.Failed {
		return true, nil
	}
	worked, err := e.revisions.Settled(ctx, r.obj)
	return !worked, err
}

// rollbackPlan is how to return to a revision, or why not.
type rollbackPlan[T lifecycle.Resource] struct {
	note      rollbackNote
	to        revision.Revision
	want      T
	objection string
}

func barred[T lifecycle.Resource](format string, args ...any) rollbackPlan[T] {
	return rollbackPlan[T]{objection: fmt.Sprintf(format, args...)}
}

// planRollback looks for the last spec that worked and previews the return to it.
func (e *engine[T, W]) planRollback(ctx context.Context, r *reconciliation[T, W]) (w rollbackPlan[T], err error) {
	_, digest, err := revision.SpecOf(r.obj)
	if err != nil {
		return w, err
	}
	switch n, ok := rollbackNoteOf(r.obj); {
	case ok && n.Spec == digest:
		return barred[T]("this is that spec, put back because revision %d had failed, and now it fails too.", n.Failed), nil
	case ok && n.FailedSpec == digest:
		return barred[T]("this spec was rolled back once and was declared again."), nil
	}
	failed, err := e.revisions.Save(ctx, r.obj, r.author, false)
	if err != nil {
		return w, err
	}
	if why := e.rollbackTargets.Refusal(r.key, r.obj.GetGeneration()); why != "" {
		return barred[T]("%s", why), nil
	}
	to, ok, err := e.refuge(ctx, r, digest)
	if err != nil || !ok {
		return barred[T]("none is known that worked."), err
	}
	w.to = to
	w.note = rollbackNote{Failed: failed, FailedSpec: digest, To: to.Number, Spec: to.Digest, Reason: r.decision.Reason}
	if w.want, err = e.respecified(r.obj, to); err == nil {
		err = e.retain(r.obj, &w)
	}
	if err == nil {
		w.objection = e.objectionTo(r, w)
	}
	return w, err
}

// retain keeps the present values of the fields that cannot be set back. The note is about
// the spec that is written, so it has the digest of that one.
func (e *engine[T, W]) retain(now T, w *rollbackPlan[T]) (err error) {
	if e.app.Abilities.Retain == nil {
		return nil
	}
	if w.note.Kept = e.app.Abilities.Retain(now, w.want); len(w.note.Kept) > 0 {
		w.to.Spec, w.note.Spec, err = revision.SpecOf(w.want)
	}
	return err
}

// refuge is the revision to return to. It is read once for each failed generation.
func (e *engine[T, W]) refuge(ctx context.Context, r *reconciliation[T, W], digest string) (revision.Revision, bool, error) {
	if known, ok := e.rollbackTargets.Of(r.key, r.obj.GetGeneration()); ok {
		return known, known.Number > 0, nil
	}
	all, err := e.revisions.List(ctx, r.obj)
	if err != nil {
		return revision.Revision{}, false, err
	}
	to, ok := revision.LastSettled(all, digest)
	e.rollbackTargets.Learn(r.key, r.obj.GetGeneration(), to)
	return to, ok, nil
}

// respecified is the object with the spec of the revision.
func (e *engine[T, W]) respecified(obj T, to revision.Revision) (T, error) {
	want := e.app.newObject()
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return want, err
	}
	var spec map[string]any
	if err := wholejson.Unmarshal(to.Spec, &spec); err != nil {
		return want, fmt.Errorf("revision %d cannot be read: %w", to.Number, err)
	}
	all["spec"] = spec
	return want, runtime.DefaultUnstructuredConverter.FromUnstructured(all, want)
}

// objectionTo is what the preview of the return has against it; empty if nothing.
func (e *engine[T, W]) objectionTo(r *reconciliation[T, W], w rollbackPlan[T]) string {
	if version := e.gvk.GroupVersion().String(); w.to.APIVersion != version {
		return fmt.Sprintf("revision %d is written in %s, and this operator works in %s.", w.to.Number, w.to.APIVersion, version)
	}
	if len(w.note.Kept) > 0 && w.note.Spec == w.note.FailedSpec {
		return fmt.Sprintf("revision %d differs only in what cannot be set back: %s.", w.to.Number, strings.Join(w.note.Kept, "; "))
	}
	if _, err := e.app.Planner.Resources(w.want, r.seen); err != nil {
		return fmt.Sprintf("revision %d cannot be rendered: %v.", w.to.Number, err)
	}
	subject := preview.Simulator[T, W]{Planner: e.app.Planner, Gates: e.app.Gates, Impact: e.app.Abilities.Impact}
	plan, _, _ := subject.Unroll(w.want, r.seen, e.now())
	for _, s := range plan.Actions() {
		if s.Class == lifecycle.ClassIrreversible {
			return fmt.Sprintf("the way back to revision %d has the step %s, which cannot be undone.", w.to.Number, s)
		}
	}
	if !plan.Settles() {
		return fmt.Sprintf("the way back to revision %d does not lead to the end: %s", w.to.Number, plan.Message)
	}
	return ""
}

// goBack restores the spec, with the note, unless the object was changed meanwhile.
func (e *engine[T, W]) goBack(ctx context.Context, r *reconciliation[T, W], w rollbackPlan[T], by string) error {
	patch, err := w.patch(r.before)
	if err != nil {
		return err
	}
	step := lifecycle.Step{
		Name: rollback, Target: r.key.Name, Class: lifecycle.ClassRoutine, Intent: lifecycle.IntentRepair, Cause: lifecycle.CausePolicy,
		Reason: lifecycle.ConditionRolledBack, Args: map[string]string{"from": fmt.Sprint(w.note.Failed), "to": fmt.Sprint(w.note.To)},
		Message: fmt.Sprintf("Revision %d%s has failed and the policy %s puts revision %d back%s. It failed with %s: %s",
			w.note.Failed, writtenBy(r.author), by, w.note.To, w.note.except(), r.decision.Reason, r.decision.Message),
	}
	began := e.now()
	if err := e.client.Patch(ctx, r.obj, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(RollbackManager)); err != nil {
		return err
	}
	e.tracker.Wrote(r.key, r.obj)
	r.before = r.obj.DeepCopyObject().(T)
	r.taken = &stepResult{step: step, began: began, took: e.now().Sub(began), own: true}
	r.author, r.decision, r.decided = RollbackManager, lifecycle.Proceed(step), false // nothing was done yet for the spec
	return nil
}

func writtenBy(author string) string {
	if author == "" {
		return ""
	}
	return " (by " + author + ")"
}

// patch replaces the spec as a whole: what the failed one added goes.
func (w rollbackPlan[T]) patch(obj client.Object) ([]byte, error) {
	note, err := json.Marshal(w.note)
	if err != nil {
		return nil, err
	}
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationRolledBack] = string(note)
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	return json.Marshal([]operation{
		{"replace", "/metadata/resourceVersion", obj.GetResourceVersion()},
		{"add", "/metadata/annotations", annotations},
		{"replace", "/spec", w.to.Spec},
	})
}

// rolledBack is the condition while the spec is one that was put back.
func rolledBack(obj lifecycle.Resource) []lifecycle.Condition {
	n, ok := rollbackNoteOf(obj)
	if !ok {
		return nil
	}
	if _, digest, err := revision.SpecOf(obj); err != nil || digest != n.Spec {
		return nil
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionRolledBack, Status: metav1.ConditionTrue, Reason: n.Reason,
		Message: fmt.Sprintf("Revision %d has failed (%s), and the spec is that of revision %d again%s. "+
			"Declare another; the failed one, declared again, is tried once more and not rolled back.", n.Failed, n.Reason, n.To, n.except()),
	}}
}
