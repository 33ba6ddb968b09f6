package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// approval are the flags of the command.
type approval struct {
	*session
	output

	reason, digest string
	lasts          time.Duration
	yes            bool
}

// approvalKind is where approvals are.
var approvalKind = v1alpha1.GroupVersion.WithResource("approvals")

func approveCommand(s *session) *cobra.Command {
	a := &approval{session: s}
	cmd := &cobra.Command{
		Use:   "approve TYPE/NAME",
		Short: "Approve the present plan of an object",
		Long: `Approve the present plan of an object, whose steps a policy holds. The command shows the
plan, and on a terminal asks for confirmation. The approval names every step and expires.
It is no longer valid after the object or the plan has changed. To delete it, use
kubectl governor revoke.

In a pipeline, approve exactly the plan that a person has reviewed: plan -o json has its
stepsDigest.`,
		Example: `  kubectl governor approve etcdcluster/my-cluster --reason "change 4711" --valid-for 2h

  # approve a reviewed plan, without a terminal
  digest=$(kubectl governor plan etcdcluster my-cluster -o json | jq -r .stepsDigest)
  kubectl governor approve etcdcluster my-cluster --steps-digest "$digest" --yes`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringVar(&a.reason, "reason", "", "the reason, for the history")
	f.DurationVar(&a.lasts, "valid-for", time.Hour, "how long steps may begin, such as 30m")
	f.StringVar(&a.digest, "steps-digest", "", "approve only the plan with this digest, see plan -o json")
	f.BoolVarP(&a.yes, "yes", "y", false, "do not ask for confirmation")
	a.add(cmd, formatName)
	return cmd
}

func (a *approval) run(ctx context.Context, args []string) error {
	const longestReason = 256
	switch {
	case a.lasts <= 0:
		return fmt.Errorf("--valid-for %s: it must be more than 0, such as 1h", a.lasts)
	case len([]rune(a.reason)) > longestReason:
		return fmt.Errorf("--reason has %d characters: at most %d fit", len([]rune(a.reason)), longestReason)
	}
	t, report, err := a.plan(ctx, args)
	if err != nil {
		return err
	}
	steps, err := a.approvable(t, report)
	if err != nil {
		return err
	}
	if err := a.confirm(len(steps)); err != nil {
		return err
	}
	made, err := a.create(ctx, t, steps)
	if err != nil {
		return err
	}
	if made.Spec.Approver == lifecycle.AuthorOf(t) {
		_, _ = fmt.Fprintf(a.ErrOut, "You are the author of generation %d: a policy with approver OtherUser does not accept this approval.\n", t.GetGeneration())
	}
	return a.write(a.session, made, func() { a.print(t, made) })
}

// plan requests the plan of the unchanged object, and prints it unless -o is for programs.
func (a *approval) plan(ctx context.Context, args []string) (*target, preview.Report, error) {
	p := &plan{session: a.session}
	t, err := p.subject(args)
	if err != nil {
		return nil, preview.Report{}, err
	}
	report, err := p.reportOn(ctx, t)
	if err == nil && a.people() {
		p.tell(t, report)
	}
	return t, report, err
}

// approvable returns the steps of the plan, or an error if it cannot be approved.
func (a *approval) approvable(t *target, r preview.Report) ([]v1alpha1.ApprovedStep, error) {
	steps := approved(r.Plan)
	switch {
	case len(steps) == 0:
		return nil, fmt.Errorf("there is nothing to approve: no step is planned for %s", t)
	case r.Omitted > 0:
		return nil, fmt.Errorf("the plan has %d more steps than can be shown, and only shown steps can be approved: make a smaller change", r.Omitted)
	case a.digest != "" && a.digest != digest(steps):
		return nil, fmt.Errorf("the plan has changed: its digest is %s, not %s. Review it with kubectl governor plan %s", digest(steps), a.digest, t)
	}
	return steps, nil
}

// approved converts the steps of a plan to those of an Approval.
func approved(p preview.Plan) (steps []v1alpha1.ApprovedStep) {
	for _, s := range p.Actions() {
		steps = append(steps, v1alpha1.ApprovedStep{Name: s.Name, Target: s.Target, Class: v1alpha1.ApprovedClass(s.Class), Args: s.Args})
	}
	return steps
}

// digest identifies a plan.
func digest(steps []v1alpha1.ApprovedStep) string {
	raw, err := json.Marshal(steps)
	if err != nil || len(steps) == 0 {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// confirm asks the user at the terminal.
func (a *approval) confirm(steps int) error {
	switch {
	case a.yes:
		return nil
	case !a.asks:
		return errors.New("there is no terminal for the confirmation: add --yes, preferably with --steps-digest")
	}
	_, _ = fmt.Fprintf(a.ErrOut, "Approve %s for %s? [y/N] ", plural(steps, "step"), brief(a.lasts))
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return errors.Join(errors.New("nothing was approved"), err)
	}
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (a *approval) create(ctx context.Context, t *target, steps []v1alpha1.ApprovedStep) (*v1alpha1.Approval, error) {
	by, err := t.whoAmI(ctx)
	if err != nil {
		return nil, err
	}
	gvk := t.GroupVersionKind()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.Approval{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Approval"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: t.GetName() + "-", Namespace: t.GetNamespace(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: t.GetAPIVersion(), Kind: t.GetKind(), Name: t.GetName(), UID: t.GetUID(),
			}},
		},
		Spec: v1alpha1.ApprovalSpec{
			TargetRef: v1alpha1.ApprovedObject{
				Group: gvk.Group, Kind: gvk.Kind, Name: t.GetName(), UID: string(t.GetUID()), Generation: t.GetGeneration(),
			},
			Steps: steps, Approver: by, ExpirationTime: metav1.NewTime(a.now().Add(a.lasts).Truncate(time.Second)), Reason: a.reason,
		},
	})
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	made, err := t.all.Resource(approvalKind).Namespace(t.GetNamespace()).
		Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{FieldManager: dryRun.FieldManager})
	if err != nil {
		return nil, withoutApprovals(err)
	}
	stored := &v1alpha1.Approval{}
	return stored, runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, stored)
}

// withoutApprovals explains a NotFound error of the Approval API.
func withoutApprovals(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("this cluster has no Approvals (%s): install Governor's present dist/install.yaml: %w", v1alpha1.GroupVersion, err)
	}
	return err
}

// whoAmI returns the user name that the API server authenticated.
func (t *target) whoAmI(ctx context.Context) (string, error) {
	gv := authenticationv1.SchemeGroupVersion
	review, err := t.all.Resource(gv.WithResource("selfsubjectreviews")).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gv.String(), "kind": "SelfSubjectReview",
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot read your user name from the API server: %w", err)
	}
	name, _, err := unstructured.NestedString(review.Object, "status", "userInfo", "username")
	return name, err
}

func (a *approval) print(t *target, made *v1alpha1.Approval) {
	if a.format == formatName {
		a.say("approval.%s/%s", v1alpha1.GroupVersion.Group, made.Name)
		return
	}
	a.say("approval/%s: %s of %s, generation %d, by %s until %s", made.Name, plural(len(made.Spec.Steps), "step"), t,
		made.Spec.TargetRef.Generation, made.Spec.Approver, moment(made.Spec.ExpirationTime.Time))
}
