package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// applyAroundDrift provides around what others changed. What was provided before a restart is known
// from the revision. Certificates are excluded: the engine always repairs them.
func (e *engine[T, W]) applyAroundDrift(ctx context.Context, r *reconciliation[T, W], wanted, filled []lifecycle.Object) error {
	names, err := e.applier.Names(uncertified(wanted))
	if err != nil {
		return err
	}
	before, err := e.revisions.AppliedObjects(ctx, r.obj)
	if err != nil {
		return err
	}
	r.spared = names
	r.changes, r.drifts, err = e.applier.ApplyAround(ctx, r.obj, filled, before)
	return err
}

// isProvided reports whether the present spec has been provided. The status of a paused
// object is about a spec that was only looked at, so its newest revision decides.
func (e *engine[T, W]) isProvided(ctx context.Context, r *reconciliation[T, W]) bool {
	observedGeneration, conditions := r.obj.StatusFields()
	if *observedGeneration != r.obj.GetGeneration() {
		return false
	}
	if !apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionPaused) {
		return true
	}
	kept, err := e.revisions.HasCurrent(ctx, r.obj)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("it is not known whether the spec was provided before", "cause", err.Error())
	}
	return kept && err == nil
}

// uncertified returns the wanted objects without the certificates, whose content is known only
// after they are issued.
func uncertified(wanted []lifecycle.Object) []lifecycle.Object {
	return slices.DeleteFunc(slices.Clone(wanted), func(obj lifecycle.Object) bool {
		_, asks, _ := lifecycle.CertificateOf(obj)
		return asks
	})
}

// driftFact is the condition while something is left as others made it.
func driftFact(drifts []apply.Drift) []lifecycle.Condition {
	if len(drifts) == 0 {
		return nil
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionDrifted, Status: metav1.ConditionTrue, Reason: changedByOthers, Message: enumerated(drifts),
	}}
}

const changedByOthers = "ChangedByOthers"

// enumerated names the first few, and how many more there are.
func enumerated(drifts []apply.Drift) string {
	const enough = 6
	var all []string
	for _, d := range drifts[:min(len(drifts), enough)] {
		all = append(all, d.String())
	}
	said := "Others changed what the operator provides, and it is left as it is: " + strings.Join(all, "; ")
	if more := len(drifts) - enough; more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said + "."
}

// newDrift reports whether the status does not say yet what has drifted.
func (r *result) newDrift() bool {
	if len(r.drifts) == 0 {
		return false
	}
	_, conditions := r.before.StatusFields()
	c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionDrifted)
	return c == nil || c.Message != enumerated(r.drifts)
}

// seenFacts are Ready, Reconciling and Stalled of a paused object: what is seen, and that
// nothing is done about it.
func seenFacts(sight lifecycle.Decision) []lifecycle.Condition {
	if sight.Outcome != lifecycle.OutcomeSettled {
		sight.Message += " Nothing is done about it: it is paused."
	}
	facts := lifecycle.StandardConditions(sight, nil)
	for i, f := range facts {
		if f.Type == lifecycle.ConditionReconciling {
			facts[i].Status, facts[i].Reason, facts[i].Message = metav1.ConditionFalse, lifecycle.ConditionPaused, "It is paused."
		}
	}
	return facts
}
