package subject

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// policies adds what the policies that select the object say.
func (s *Subject) policies(ctx context.Context, object *unstructured.Unstructured, state *experiment.State) error {
	list := &v1alpha1.OperationPolicyList{}
	err := s.Client.List(ctx, list)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("whether a policy holds the object cannot be seen: %w", err)
	}
	ns := &corev1.Namespace{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: s.Key.Namespace}, ns); err != nil {
		return fmt.Errorf("whether a policy selects the namespace cannot be seen: %w", err)
	}
	about := policy.Object{
		Group: s.Kind.Group, Kind: s.Kind.Kind, Namespace: s.Key.Namespace, Name: s.Key.Name, Labels: object.GetLabels(),
		NamespaceLabels: ns.Labels,
	}
	selecting := policy.NewSet(list.Items).Selecting(about)
	effective := selecting.Effective()
	state.Paused = state.Paused || effective.Paused()
	state.KeepsDrift = effective.Drift == v1alpha1.DriftPolicyReport
	for _, r := range s.refusals(selecting, about) {
		state.Held = append(state.Held, "the policy \""+r.Policy+"\" holds it: "+r.Message)
	}
	return nil
}

// refusals are the freezes and windows that hold a disruption, and whatever holds the
// repair after it. A rule that Governor's own disruptions
// need an Approval is no refusal: a person requests this one.
func (s *Subject) refusals(selecting policy.Set, about policy.Object) []lifecycle.Refusal {
	step := lifecycle.Step{Name: "Chaos", Class: lifecycle.ClassDisruptive, Intent: lifecycle.IntentChange}
	approved := func() policy.ApprovalCheck { return policy.ApprovalCheck{Approval: &history.Approval{}} }
	q := policy.Question{Object: about, Step: step, Now: s.Now(), Deletion: true, Permit: approved} // waves hold no deletion
	held := selecting.Judge(q).Refusals
	if len(held) > 0 {
		return held
	}
	q.Step.Intent, q.Permit = lifecycle.IntentRepair, func() policy.ApprovalCheck { return policy.ApprovalCheck{} }
	return selecting.Judge(q).Refusals
}
