package main

import (
	"context"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

func pauseCommand(s *session) *cobra.Command {
	return switchCommand(s, "pause", "Let Governor only observe an object", "true", "paused: Governor observes and changes nothing")
}

func resumeCommand(s *session) *cobra.Command {
	return switchCommand(s, "resume", "Let Governor act on a paused object again", nil, "resumed")
}

// switchCommand sets the annotation to the value; nil removes it.
func switchCommand(s *session, use, short string, value any, done string) *cobra.Command {
	var which selection
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Example: "  kubectl governor " + use + " etcdcluster/my-cluster\n" +
			"  kubectl governor " + use + " etcdclusters -l team=shop",
		ValidArgsFunction: s.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return which.each(s, args, func(t *target) error {
				if err := t.annotate(cmd.Context(), lifecycle.AnnotationPaused, value); err != nil {
					return err
				}
				s.say("%s %s", t, done)
				if value == nil && pausedBySpec(t) {
					s.say("but spec.paused is true: Governor changes nothing until it is false")
				}
				return nil
			})
		},
	}
	which.add(cmd)
	return cmd
}

func (t *target) annotate(ctx context.Context, key string, value any) error {
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
	_, err := t.merge(ctx, patch, metav1.PatchOptions{FieldManager: dryRun.FieldManager})
	return err
}

func pausedBySpec(t *target) bool {
	spec, _ := t.Object["spec"].(map[string]any)
	return spec["paused"] == true
}

// isPaused reports whether the condition Paused is true.
func isPaused(all []metav1.Condition) bool {
	return apimeta.IsStatusConditionTrue(all, lifecycle.ConditionPaused)
}
