// Package rollback plans the return of an object to the last spec that worked.
package rollback

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/engine/internal/specchange"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// Manager is the field manager of a spec that the operator has put back.
const Manager = "governor-rollback"

// stepName is the name of the step that puts a spec back.
const stepName = "Rollback"

// Planner plans returns. It is safe for concurrent use.
type Planner[T lifecycle.Resource] struct {
	Revisions *revision.Store
	Specs     *specchange.Finder[T]
	// Retain is that of lifecycle.Abilities; nil if all fields can be set back.
	Retain func(now, earlier T) []string

	targets targets
}

// Plan is how to return to a revision, or why not.
type Plan[T lifecycle.Resource] struct {
	Note Note
	To   revision.Revision
	Want T
	// Objection is empty if the return can be made.
	Objection string
}

func barred[T lifecycle.Resource](format string, args ...any) Plan[T] {
	return Plan[T]{Objection: fmt.Sprintf(format, args...)}
}

// Preview unrolls the plan of an object that was put back, or returns why it cannot be rendered.
type Preview[T lifecycle.Resource] func(want T) (preview.Plan, error)

// Plan looks for the last spec that worked and previews the return to it. author is that of the
// spec of the object, and reason is how its failure showed.
func (p *Planner[T]) Plan(ctx context.Context, obj T, author, reason string, try Preview[T]) (w Plan[T], err error) {
	_, digest, err := revision.SpecOf(obj)
	if err != nil {
		return w, err
	}
	switch n, ok := NoteOf(obj); {
	case ok && n.Spec == digest:
		return barred[T]("this is that spec, put back because revision %d had failed, and now it fails too.", n.Failed), nil
	case ok && n.FailedSpec == digest:
		return barred[T]("this spec was rolled back once and was declared again."), nil
	}
	failed, err := p.Revisions.Save(ctx, obj, author, false)
	if err != nil {
		return w, err
	}
	to, err := p.target(ctx, obj, digest)
	if err != nil {
		return w, err
	}
	switch why := p.targets.refusal(client.ObjectKeyFromObject(obj), obj.GetGeneration()); {
	case why != "":
		return barred[T]("%s", why), nil
	case to.Number == 0:
		return barred[T]("none is known that worked."), nil
	}
	w.To = to
	w.Note = Note{Failed: failed, FailedSpec: digest, To: to.Number, Spec: to.Digest, Reason: reason}
	if w.Want, err = p.Specs.Respecified(obj, to); err == nil {
		err = p.retain(obj, &w)
	}
	if err == nil {
		w.Objection = p.objectionTo(w, try)
	}
	return w, err
}

// Refuse records that the API server does not accept the planned spec of the object, and returns
// the objection.
func (p *Planner[T]) Refuse(obj T, w Plan[T], why string) string {
	objection := fmt.Sprintf("the API server refuses revision %d: %s.", w.Note.To, why)
	p.targets.refuse(client.ObjectKeyFromObject(obj), obj.GetGeneration(), objection)
	return objection
}

// Forget drops what is known of an object that is gone.
func (p *Planner[T]) Forget(key types.NamespacedName) { p.targets.Forget(key) }

// retain keeps the present values of the fields that cannot be set back. The note is about
// the spec that is written, so it has the digest of that one.
func (p *Planner[T]) retain(now T, w *Plan[T]) (err error) {
	if p.Retain == nil {
		return nil
	}
	if w.Note.Kept = p.Retain(now, w.Want); len(w.Note.Kept) > 0 {
		w.To.Spec, w.Note.Spec, err = revision.SpecOf(w.Want)
	}
	return err
}

// target is the revision to return to; its number is 0 if there is none. It is read once for each
// failed generation. Clients that replace an object remove its note, and so the revisions tell, too,
// whether the spec was rolled back before.
func (p *Planner[T]) target(ctx context.Context, obj T, digest string) (to revision.Revision, err error) {
	key := client.ObjectKeyFromObject(obj)
	if known, ok := p.targets.of(key, obj.GetGeneration()); ok {
		return known, nil
	}
	all, err := p.Revisions.List(ctx, obj)
	if err != nil {
		return to, err
	}
	if number := rolledBack(all, digest); number > 0 {
		p.targets.refuse(key, obj.GetGeneration(), fmt.Sprintf("this spec was rolled back once, as revision %d, and was declared again.", number))
		return to, nil
	}
	to, _ = revision.LastSettled(all, digest)
	p.targets.learn(key, obj.GetGeneration(), to)
	return to, nil
}

// rolledBack is the number of the revision with that spec that a rollback replaced; 0 if none is
// known. The revisions must be sorted.
func rolledBack(all []revision.Revision, digest string) int64 {
	for i, r := range all[:max(0, len(all)-1)] {
		if r.Digest == digest && all[i+1].Number == r.Number+1 && all[i+1].By == Manager {
			return r.Number
		}
	}
	return 0
}

// objectionTo is what the preview of the return has against it; empty if nothing.
func (p *Planner[T]) objectionTo(w Plan[T], try Preview[T]) string {
	if version := p.Specs.Kind.GroupVersion().String(); w.To.APIVersion != version {
		return fmt.Sprintf("revision %d is written in %s, and this operator works in %s.", w.To.Number, w.To.APIVersion, version)
	}
	if len(w.Note.Kept) > 0 && w.Note.Spec == w.Note.FailedSpec {
		return fmt.Sprintf("revision %d differs only in what cannot be set back: %s.", w.To.Number, strings.Join(w.Note.Kept, "; "))
	}
	plan, err := try(w.Want)
	if err != nil {
		return fmt.Sprintf("revision %d cannot be rendered: %v.", w.To.Number, err)
	}
	for _, s := range plan.Actions() {
		if s.Class == lifecycle.ClassIrreversible {
			return fmt.Sprintf("the way back to revision %d has the step %s, which cannot be undone.", w.To.Number, s)
		}
	}
	if !plan.Settles() {
		return fmt.Sprintf("the way back to revision %d does not lead to the end: %s", w.To.Number, plan.Message)
	}
	return ""
}

// Step is the return as a step, for the event and the history. by are the policies that want it,
// and failure is the decision about the spec that failed.
func (w Plan[T]) Step(target, author, by string, failure lifecycle.Decision) lifecycle.Step {
	return lifecycle.Step{
		Name: stepName, Target: target, Class: lifecycle.ClassRoutine, Intent: lifecycle.IntentRepair, Cause: lifecycle.CausePolicy,
		Reason: lifecycle.ConditionRolledBack, Args: map[string]string{"from": fmt.Sprint(w.Note.Failed), "to": fmt.Sprint(w.Note.To)},
		Message: fmt.Sprintf("Revision %d%s has failed and the policy %s puts revision %d back%s. It failed with %s: %s",
			w.Note.Failed, writtenBy(author), by, w.Note.To, w.Note.except(), failure.Reason, failure.Message),
	}
}

func writtenBy(author string) string {
	if author == "" {
		return ""
	}
	return " (by " + author + ")"
}

// Patch replaces the spec as a whole: what the failed one added goes.
func (w Plan[T]) Patch(obj client.Object) ([]byte, error) {
	note, err := json.Marshal(w.Note)
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
		{"replace", "/spec", w.To.Spec},
	})
}
