package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle/policy"
)

func revokeCommand(s *session) *cobra.Command {
	var which selection
	cmd := &cobra.Command{
		Use:   "revoke",
		Short: "Delete all approvals of an object",
		Long: `Delete all approvals of an object, whichever user gave them. Governor finishes a step that
has begun; policies hold the next one again.`,
		Example: `  kubectl governor revoke etcdcluster/my-cluster
  kubectl governor revoke etcdclusters -l team=shop`,
		ValidArgsFunction: s.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return which.each(s, args, func(t *target) error { return s.revoke(cmd.Context(), t) })
		},
	}
	which.add(cmd)
	return cmd
}

func (s *session) revoke(ctx context.Context, t *target) error {
	given, err := t.approvals(ctx)
	if err != nil {
		return withoutApprovals(err)
	}
	if len(given) == 0 {
		s.say("There is no approval for %s: nothing is revoked.", t)
	}
	var faults []error
	for _, a := range given {
		err := t.all.Resource(approvalKind).Namespace(a.Namespace).
			Delete(ctx, a.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}})
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.say("approval/%s revoked: %s of %s, generation %d, approved by %s until %s%s", a.Name, plural(len(a.Spec.Steps), "step"), t,
			a.Spec.TargetRef.Generation, a.Spec.Approver, moment(a.Spec.ExpirationTime.Time), worthless(a))
	}
	return errors.Join(faults...)
}

// approvals returns those for the object, and for earlier objects of its name.
func (t *target) approvals(ctx context.Context) ([]v1alpha1.Approval, error) {
	found, faults := fetch(ctx, t.all, []source{{kind: approvalKind, namespace: t.GetNamespace()}})
	gvk := t.GroupVersionKind()
	all := as[v1alpha1.Approval](found[0])
	return slices.DeleteFunc(all, func(a v1alpha1.Approval) bool {
		of := a.Spec.TargetRef
		return of.Group != gvk.Group || of.Kind != gvk.Kind || of.Name != t.GetName()
	}), faults[0]
}

// worthless returns why an approval was no longer valid, or "".
func worthless(a v1alpha1.Approval) string {
	valid := apimeta.FindStatusCondition(a.Status.Conditions, policy.ConditionValid)
	if valid == nil || valid.Status == metav1.ConditionTrue {
		return ""
	}
	return "; it was no longer valid (" + valid.Reason + ")"
}
