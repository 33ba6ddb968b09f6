package engine

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/explain"
	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/engine/internal/rollback"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// undo puts the last spec that worked back where a policy says so of one that failed. It
// does so once, and never of a spec that was put back itself: what then fails halts.
func (e *engine[T, W]) undo(ctx context.Context, r *reconciliation[T, W]) {
	if !r.Decision.Failed && !r.Decision.Suspect || deleting(r.obj) {
		return
	}
	by := strings.Join(e.policies.RollsBack(r.obj), ", ")
	if by == "" {
		return
	}
	failed, err := e.changeFailed(ctx, r)
	if err == nil && !failed {
		return
	}
	var w rollback.Plan[T]
	if err == nil {
		w, err = e.rollback.Plan(ctx, r.obj, r.Author, r.Decision.Reason, func(want T) (preview.Plan, error) { return e.tryReturn(want, r.seen) })
	}
	if err == nil && w.Objection == "" {
		err = e.goBack(ctx, r, w, by)
	}
	if apierrors.IsInvalid(err) { // a field that cannot be set back, and that the planner does not know
		w.Objection, err = e.rollback.Refuse(r.obj, w, explain.Statement(err)), nil
	}
	switch {
	case err != nil:
		r.Cause, r.Decision = err, explain.Error(err)
	case w.Objection != "":
		r.Decision.Message += fmt.Sprintf(" It halts, although the policy %s wants the last spec that worked: %s", by, w.Objection)
	}
}

// changeFailed reports whether the present spec does not work. One that once worked is not to
// blame for what the planner only suspects.
func (e *engine[T, W]) changeFailed(ctx context.Context, r *reconciliation[T, W]) (bool, error) {
	if r.Decision.Failed {
		return true, nil
	}
	worked, err := e.revisions.Settled(ctx, r.obj)
	return !worked, err
}

// tryReturn previews the return to the spec of want.
func (e *engine[T, W]) tryReturn(want T, seen W) (preview.Plan, error) {
	if _, err := e.app.Planner.Resources(want, seen); err != nil {
		return preview.Plan{}, err
	}
	plan, _, _ := e.judge.Simulator(want).Unroll(want, seen, e.now())
	return plan, nil
}

// goBack restores the spec, with the note, unless the object was changed meanwhile.
func (e *engine[T, W]) goBack(ctx context.Context, r *reconciliation[T, W], w rollback.Plan[T], by string) error {
	patch, err := w.Patch(r.Before)
	if err != nil {
		return err
	}
	step := w.Step(r.Key.Name, r.Author, by, r.Decision)
	began := e.now()
	if err := e.client.Patch(ctx, r.obj, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(rollback.Manager)); err != nil {
		return err
	}
	e.tracker.Wrote(r.Key, r.obj)
	r.Before = r.obj.DeepCopyObject().(T)
	r.Taken = &publish.Taken{Step: step, Began: began, Took: e.now().Sub(began), Own: true}
	// Without this revision, a client that declares the failed spec at once would be rolled back again and again.
	if _, err := e.revisions.Save(ctx, r.obj, rollback.Manager, false); err != nil {
		return err
	}
	r.Author, r.Decision, r.Decided = rollback.Manager, lifecycle.Proceed(step), false // nothing was done yet for the spec
	return nil
}
