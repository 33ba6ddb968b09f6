package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// plan are the flags of the command.
type plan struct {
	*session
	output

	file     string
	set      []string
	remove   bool
	detailed bool
}

func planCommand(s *session) *cobra.Command {
	p := &plan{session: s}
	cmd := &cobra.Command{
		Use:   "plan TYPE/NAME [--set PATH=VALUE]... [-f FILE] [--delete]",
		Short: "Show the steps that Governor will take, before it takes them",
		Long: `Show the steps that Governor will take for an unchanged object, after a change, or for its
deletion. The command changes nothing: it sends a dry run of the change, and so needs the
right to patch the object.

The exit code is 0 if there is a plan, and 1 on an error or if nothing will be done for an
object that is not as declared. With --detailed-exitcode, a plan with changes is 2.`,
		Example: `  # plan a fourth member
  kubectl governor plan etcdcluster/my-cluster --set spec.size=4

  # plan an upgrade, for a pipeline
  kubectl governor plan etcdcluster/my-cluster --set spec.version=3.6 -o json

  # plan the application of a file
  kubectl governor plan -f my-cluster.yaml

  # plan the deletion
  kubectl governor plan etcdcluster/my-cluster --delete`,
		ValidArgsFunction: s.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&p.set, "set", nil, "a field and its value, such as spec.size=5; may be repeated")
	f.StringVarP(&p.file, "filename", "f", "", "a file with the object to apply; - for standard input")
	f.BoolVar(&p.remove, "delete", false, "plan the deletion")
	f.BoolVar(&p.detailed, "detailed-exitcode", false, "exit with 2 if there are changes")
	cmd.MarkFlagsMutuallyExclusive("filename", "set")
	cmd.MarkFlagsMutuallyExclusive("filename", "delete")
	cmd.MarkFlagsMutuallyExclusive("delete", "set")
	p.add(cmd, formatWide)
	return cmd
}

func (p *plan) run(ctx context.Context, args []string) error {
	t, answer, err := p.ask(ctx, args)
	if err != nil {
		return p.explain(t, err)
	}
	report, err := p.read(t, answer)
	if err != nil {
		return err
	}
	with := planned{report, digest(approved(report.Plan))}
	if err := p.write(p.session, with, func() { p.tell(t, report); p.seal(with) }); err != nil {
		return err
	}
	switch {
	case report.Changes() && p.detailed:
		return errChanges
	case report.Changes(), report.Settles():
		return nil
	}
	return fmt.Errorf("nothing will be done: %s: %s", report.Reason, report.Message)
}

// planned is the output of -o.
type planned struct {
	preview.Report
	// StepsDigest is for approve --steps-digest; empty if there are no steps.
	StepsDigest string `json:"stepsDigest,omitempty"`
}

// seal prints the digest with -o wide.
func (p *plan) seal(r planned) {
	if p.wide() && r.StepsDigest != "" {
		p.say("Steps digest: %s", r.StepsDigest)
	}
}

// ask sends the dry run that requests the plan.
func (p *plan) ask(ctx context.Context, args []string) (*target, *unstructured.Unstructured, error) {
	if p.file != "" {
		return p.askAboutFile(ctx, args)
	}
	question := preview.Update
	if p.remove {
		question = preview.Delete
	}
	t, err := p.find(args)
	if err != nil {
		return nil, nil, err
	}
	patch, err := edits(p.set)
	if err != nil {
		return t, nil, err
	}
	answer, err := t.merge(ctx, asking(patch, question), dryRun)
	return t, answer, err
}

// reportOn returns the plan of the unchanged object.
func (p *plan) reportOn(ctx context.Context, t *target) (preview.Report, error) {
	answer, err := t.merge(ctx, asking(map[string]any{}, preview.Update), dryRun)
	if err != nil {
		return preview.Report{}, p.explain(t, err)
	}
	return p.read(t, answer)
}

// read decodes the report of the response.
func (p *plan) read(t *target, answer *unstructured.Unstructured) (preview.Report, error) {
	report, ok := preview.Decode(answer.GetAnnotations()[lifecycle.AnnotationPreview])
	if !ok {
		return report, p.silence(t)
	}
	return report, nil
}

// dryRun are the options of a request that stores nothing.
var dryRun = metav1.PatchOptions{
	DryRun: []string{metav1.DryRunAll}, FieldManager: "kubectl-governor", FieldValidation: metav1.FieldValidationStrict,
}

// asking adds the preview annotation to an object or a patch.
func asking(content map[string]any, question string) map[string]any {
	_ = unstructured.SetNestedField(content, question, "metadata", "annotations", lifecycle.AnnotationPreview)
	return content
}

// explain adds a remedy to an error. The API server reports an unknown field after the
// whole object, which explain cuts.
func (p *plan) explain(t *target, err error) error {
	_, fault, unknown := strings.Cut(err.Error(), "strict decoding error: ")
	switch {
	case t == nil:
		return err
	case unknown:
		return fmt.Errorf("%s: %s; kubectl explain %s --recursive lists the fields", t, fault, t.mapping.Resource.Resource)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("a preview is a dry run of the change, so it needs the same right, to patch %s: %w", t.mapping.Resource.Resource, err)
	}
	return err
}

// silence explains a response without a plan.
func (p *plan) silence(t *target) error {
	if err := p.mustRun(t); err != nil {
		return err
	}
	return errors.New("Governor does not answer: it is not running, it has no webhooks (--webhooks=false), " +
		"or it does not watch the namespace " + t.GetNamespace() + ". Nothing was changed; see kubectl -n governor-system get pods")
}
