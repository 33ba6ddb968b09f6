package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// historyLabel marks the ConfigMaps that keep histories.
const historyLabel = "governor.dev/history"

// historyStore keeps the history of each object in a ConfigMap that it owns: one write
// per step, none for anything else. It is read from the API server, not cached.
type historyStore struct {
	app     string
	client  client.Client
	live    client.Reader
	version string
}

// record appends the entry, unless it says again what the last one said, and notes
// before it what was waited for since the last one.
func (d *historyStore) record(ctx context.Context, owner client.Object, waited []history.WaitRecord, e *history.Entry) error {
	if e == nil && len(waited) == 0 {
		return nil
	}
	cm, book, err := d.open(ctx, owner)
	if err != nil {
		return err
	}
	book, news := d.continued(book, waited, e)
	if !news {
		return nil
	}
	raw, err := book.Encode()
	if err != nil {
		return err
	}
	cm.Data = map[string]string{history.Key: raw}
	return d.save(ctx, cm)
}

// continued is the book with the entry, if there is one, and whether it is to be written.
// What was waited for between two attempts in vain took no usual time.
func (d *historyStore) continued(book history.Log, waited []history.WaitRecord, e *history.Entry) (_ history.Log, news bool) {
	if e == nil {
		return book.Waited(waited), true
	}
	if after, noted, again := book.RecordRetry(*e); again {
		return after, noted
	}
	book = book.Waited(waited)
	if e.Result == history.Refused && book.Repeats(*e) {
		return book, false
	}
	e.Operator = d.version
	return book.Append(*e), true
}

// open returns the ConfigMap, not yet created if there is none, and the book in it.
func (d *historyStore) open(ctx context.Context, owner client.Object) (*corev1.ConfigMap, history.Log, error) {
	gvk, err := apiutil.GVKForObject(owner, d.client.Scheme())
	if err != nil {
		return nil, history.Log{}, err
	}
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: history.Name(gvk.Kind, owner.GetName())}
	switch err = d.live.Get(ctx, key, cm); {
	case apierrors.IsNotFound(err):
		return d.blank(owner, gvk, key), history.Log{}, nil
	case err != nil:
		return nil, history.Log{}, err
	}
	book, err := history.Decode(cm.Data[history.Key])
	if err != nil {
		book = history.Log{} // unreadable: start a new one rather than stop working
	}
	return cm, book, nil
}

func (d *historyStore) blank(owner client.Object, gvk schema.GroupVersionKind, key client.ObjectKey) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: key.Name, Namespace: key.Namespace,
		Labels: map[string]string{
			historyLabel: d.app, lifecycle.LabelInstance: owner.GetName(), lifecycle.LabelManagedBy: apply.Manager,
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)},
	}}
}

// save writes the book, except where nothing is created any more: what goes with its
// namespace leaves none.
func (d *historyStore) save(ctx context.Context, cm *corev1.ConfigMap) error {
	var err error
	if cm.ResourceVersion == "" {
		err = d.client.Create(ctx, cm)
	} else {
		err = d.client.Update(ctx, cm)
	}
	if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("cannot write the history %q: %w", cm.Name, err)
	}
	return nil
}

// joinRefusals are the gates that refuse, and all that they say.
func joinRefusals(refusals []lifecycle.Refusal) (gates, said string) {
	var names, sentences []string
	for _, r := range refusals {
		name := gateName(r)
		names, sentences = append(names, name), append(sentences, name+": "+r.Message)
	}
	return strings.Join(names, ", "), strings.Join(sentences, "; ")
}

// gateName is the gate's name, after that of the policy that it is of.
func gateName(r lifecycle.Refusal) string {
	if r.Policy != "" {
		return r.Policy + "/" + r.Gate
	}
	return r.Gate
}

// entry returns the entry of the history for the result, or nil if there is nothing to record.
func (e *engine[T, W]) entry(r *reconciliation[T, W]) *history.Entry {
	names := make([]string, 0, len(e.app.Gates))
	for _, g := range e.app.Gates {
		names = append(names, g.Name)
	}
	entry := r.entry(names)
	if entry != nil && r.judged() {
		entry.Policies, entry.Evidence = e.policy(r.obj).Names, e.evidence(r.obj, r.seen, entry.Step)
	}
	return entry
}

// entry is the part of the engine's entry that follows from the result. gates are the names of
// the application's gates, in their order.
func (r *result) entry(gates []string) *history.Entry {
	entry := &history.Entry{At: r.began, Generation: r.object.GetGeneration(), Result: history.Refused}
	switch {
	case r.taken != nil:
		entry.At, entry.Step, entry.Duration, entry.Result = r.taken.began, r.taken.step, r.taken.took, history.Succeeded
		entry.Approval, entry.Bypass = r.approval, r.bypass
		if r.taken.err != nil {
			entry.Result, entry.Message = history.Failed, r.taken.err.Error()
		}
	case len(r.refusals) > 0:
		entry.Step = r.decision.Step
		entry.HeldBy, entry.Message = joinRefusals(r.refusals)
	case r.newlyHeld():
		entry.Step = r.held.step
		entry.HeldBy, entry.Message = joinRefusals(r.held.refusals)
	default:
		return nil
	}
	entry.By = r.changedBy(entry.Step)
	if r.judged() {
		entry.Gates = r.gateResults(gates, entry.Step)
	}
	return entry
}

// judged reports whether gates judged the step. They do not judge the engine's own steps.
func (r *result) judged() bool {
	return r.taken != nil && !r.taken.own || r.taken == nil && len(r.refusals) > 0
}

// changedBy returns the author of the change that the step carries out. It is empty for a step
// with another known cause than a change of the spec. Not every application names causes.
func (r *result) changedBy(step lifecycle.Step) string {
	if step.Cause == "" || step.Cause == lifecycle.CauseSpecChange || r.taken != nil && r.taken.own {
		return r.author
	}
	return ""
}

// gateResults returns what each gate said of the step: the application's gates in their order,
// then those of policies.
func (r *result) gateResults(names []string, step lifecycle.Step) []history.GateResult {
	if asksBudget(r.object, step) && len(r.refusals) == 0 { // else it was not asked, or objects itself
		names = append(slices.Clip(names), budget.FleetBudget)
	}
	var all []history.GateResult
	for _, name := range names {
		all = append(all, history.GateResult{Gate: name, Objection: messageOf(r.refusals, name)})
	}
	for _, refusal := range r.refusals {
		if !slices.Contains(names, gateName(refusal)) {
			all = append(all, history.GateResult{Gate: gateName(refusal), Objection: refusal.Message})
		}
	}
	return all
}

func messageOf(refusals []lifecycle.Refusal, gate string) string {
	for _, r := range refusals {
		if gateName(r) == gate {
			return r.Message
		}
	}
	return ""
}

// evidence is bounded, as the history is: so many lines of so many bytes.
func (e *engine[T, W]) evidence(want T, seen W, step lifecycle.Step) []string {
	if e.app.Abilities.Evidence == nil {
		return nil
	}
	const lines, length = 8, 200
	said := e.app.Abilities.Evidence(want, seen, step)
	all := slices.Clone(said[:min(len(said), lines)])
	for i, line := range all {
		all[i] = strings.ToValidUTF8(line[:min(len(line), length)], "")
	}
	return all
}

// unfinished reports whether the object's status says that something is under way or waits for a person.
func unfinished(obj lifecycle.Resource) bool {
	_, conditions := obj.StatusFields()
	return apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionReconciling) || apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionChangeHeld) ||
		apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionStalled)
}

// recordedCause is the cause of the last step that was taken, by the history; empty if it cannot be read.
func (e *engine[T, W]) recordedCause(ctx context.Context, obj T) lifecycle.Cause {
	_, book, err := e.history.open(ctx, obj)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("what began before this operator is not known", "cause", err.Error())
		return ""
	}
	for _, entry := range slices.Backward(book.Entries) {
		if entry.Result != history.Refused {
			return entry.Step.Cause
		}
	}
	return ""
}
