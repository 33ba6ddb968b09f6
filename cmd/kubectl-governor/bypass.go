package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

func bypassCommand(s *session) *cobra.Command {
	var reason string
	var end bool
	var which selection
	cmd := &cobra.Command{
		Use:   "bypass",
		Short: "Let the steps of an object pass all policies, in an emergency",
		Long: `Let the steps of an object pass the windows, freezes, approvals and waves of all policies,
until --end. It needs the verb "bypass" on operationpolicies.governor.dev in the object's
namespace. The history records your user name and the reason.`,
		Example: `  kubectl governor bypass etcdcluster/my-cluster --reason "the disk is full, INC-4711"
  kubectl governor bypass etcdcluster/my-cluster --end`,
		ValidArgsFunction: s.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if end == (strings.TrimSpace(reason) != "") {
				return errors.New("give a reason with --reason, or end the bypass with --end")
			}
			return which.each(s, args, func(t *target) error { return s.bypass(cmd.Context(), t, reason) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the history")
	cmd.Flags().BoolVar(&end, "end", false, "let the policies hold the object again")
	which.add(cmd)
	return cmd
}

// bypass sets both annotations, or removes them if there is no reason.
func (s *session) bypass(ctx context.Context, t *target, reason string) error {
	annotations := map[string]any{lifecycle.AnnotationBypass: nil, lifecycle.AnnotationBypassBy: nil}
	said := "policies hold its steps again"
	if reason != "" {
		by, err := t.whoAmI(ctx)
		if err != nil {
			return err
		}
		annotations = map[string]any{lifecycle.AnnotationBypass: reason, lifecycle.AnnotationBypassBy: by}
		said = "passes all policies, by " + by + "; end it with kubectl governor bypass --end"
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	if _, err := t.merge(ctx, patch, metav1.PatchOptions{FieldManager: dryRun.FieldManager}); err != nil {
		return err
	}
	s.say("%s %s", t, said)
	return nil
}
