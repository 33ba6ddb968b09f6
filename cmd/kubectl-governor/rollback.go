package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json" // whole numbers stay whole

	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// undo are the flags of the command.
type undo struct {
	*session
	output

	to          int64
	dryRun, yes bool
}

func rollbackCommand(s *session) *cobra.Command {
	u := &undo{session: s}
	cmd := &cobra.Command{
		Use:   "rollback TYPE/NAME [--to-revision N]",
		Short: "Return to an earlier spec",
		Long: fmt.Sprintf(`Return to an earlier spec, by default the last one that settled. The command shows the plan,
and then writes the spec with your own rights, as if you had edited the object. The steps
pass the same gates and policies, and the history records them. Governor keeps the last
%d specs, and the last one that settled.

A rollback with an irreversible step, or one that does not settle, needs --yes.`, revision.Limit),
		Example: `  # list the revisions
  kubectl governor revisions etcdcluster/my-cluster

  # show the plan only
  kubectl governor rollback etcdcluster/my-cluster --dry-run

  kubectl governor rollback etcdcluster/my-cluster
  kubectl governor rollback etcdcluster/my-cluster --to-revision 3`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return u.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.Int64Var(&u.to, "to-revision", 0, "the revision to return to, see kubectl governor revisions")
	f.BoolVar(&u.dryRun, "dry-run", false, "show the plan and change nothing")
	f.BoolVarP(&u.yes, "yes", "y", false, "roll back even if a step is irreversible or the plan does not settle")
	u.add(cmd)
	return cmd
}

func revisionsCommand(s *session) *cobra.Command {
	u := &undo{session: s}
	cmd := &cobra.Command{
		Use:   "revisions TYPE/NAME",
		Short: "List the specs to which an object can return",
		Long: fmt.Sprintf(`List the specs to which kubectl governor rollback can return: the last %d, and the last one
that settled.`, revision.Limit),
		Example:           "  kubectl governor revisions etcdcluster/my-cluster",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return u.list(cmd.Context(), args) },
	}
	u.add(cmd)
	return cmd
}

func (u *undo) list(ctx context.Context, args []string) error {
	t, err := u.subject(args)
	if err != nil {
		return err
	}
	all, err := t.revisions(ctx)
	if err != nil {
		return err
	}
	return u.write(u.session, all, func() { u.enumerate(t, all) })
}

func (u *undo) run(ctx context.Context, args []string) error {
	t, err := u.subject(args)
	if err != nil {
		return err
	}
	all, err := t.revisions(ctx)
	if err != nil {
		return err
	}
	to, err := u.choose(t, all)
	if err != nil {
		return err
	}
	back, err := t.respecified(to)
	if err != nil {
		return err
	}
	kept, err := u.show(ctx, t, back, to)
	if err != nil || u.dryRun {
		return err
	}
	if _, err := t.client.Update(ctx, back, metav1.UpdateOptions{FieldManager: dryRun.FieldManager, FieldValidation: dryRun.FieldValidation}); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	_, _ = fmt.Fprintf(u.ErrOut, "%s has the spec of revision %d again%s\n", t, to.Number, except(kept))
	return nil
}

// except names the fields that keep their values; empty if there are none.
func except(kept []string) string {
	if len(kept) == 0 {
		return ""
	}
	return ", except that " + strings.Join(kept, " and ")
}

// show prints the plan, and returns an error if the rollback must not happen. It keeps the
// present values of fields that cannot be set back, and returns their names.
func (u *undo) show(ctx context.Context, t *target, back *unstructured.Unstructured, to revision.Revision) ([]string, error) {
	question := &unstructured.Unstructured{Object: asking(back.DeepCopy().Object, preview.Rollback)}
	p := &plan{session: u.session, output: u.output}
	answer, err := t.client.Update(ctx, question, metav1.UpdateOptions{
		DryRun: dryRun.DryRun, FieldManager: dryRun.FieldManager, FieldValidation: dryRun.FieldValidation,
	})
	if err != nil {
		return nil, fmt.Errorf("revision %d cannot be declared again: %w", to.Number, p.explain(t, err))
	}
	report, ok := preview.Decode(answer.GetAnnotations()[lifecycle.AnnotationPreview])
	switch {
	case !ok && u.dryRun:
		return nil, p.silence(t)
	case !ok && !u.yes:
		return nil, fmt.Errorf("%w; --yes rolls back without a plan", p.silence(t))
	case !ok:
		return nil, nil
	case len(report.Kept) > 0:
		back.Object["spec"] = answer.Object["spec"]
	}
	if len(report.Kept) > 0 && t.declares(back) {
		return nil, fmt.Errorf("nothing was changed: revision %d differs only in fields that cannot be set back: %s", to.Number, strings.Join(report.Kept, "; "))
	}
	if err := u.write(u.session, report, func() { p.tell(t, report) }); err != nil || u.dryRun || u.yes {
		return report.Kept, err
	}
	return report.Kept, objection(report)
}

// declares reports whether the object has this spec already.
func (t *target) declares(back *unstructured.Unstructured) bool {
	is, _, _ := unstructured.NestedMap(t.Object, "spec")
	would, _, _ := unstructured.NestedMap(back.Object, "spec")
	return equality.Semantic.DeepEqual(sparse(numbers(is)), sparse(numbers(would)))
}

// objection returns why a plan needs --yes; nil if it does not.
func objection(r preview.Report) error {
	irreversible := slices.ContainsFunc(r.Actions(), func(s preview.Step) bool { return s.Class == lifecycle.ClassIrreversible })
	switch {
	case irreversible:
		return errors.New("nothing was changed: the plan has an irreversible step; use --yes to roll back anyway")
	case r.Outcome == lifecycle.OutcomeBlocked:
		return fmt.Errorf("nothing was changed: the plan does not settle (%s); use --yes to roll back anyway", r.Reason)
	}
	return nil
}

// revisions returns those of the object, oldest first.
func (t *target) revisions(ctx context.Context) ([]revision.Revision, error) {
	selector := labels.SelectorFromSet(revision.Selector(t.GetKind(), t.GetName())).String()
	list, err := t.all.Resource(appsv1.SchemeGroupVersion.WithResource("controllerrevisions")).Namespace(t.GetNamespace()).
		List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("the revisions are ControllerRevisions, which cannot be read: %w", err)
	}
	all := []revision.Revision{}
	for i := range list.Items {
		var c appsv1.ControllerRevision
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &c); err != nil {
			return nil, err
		}
		if r, err := revision.Of(&c); err == nil && metav1.IsControlledBy(&c, t) {
			all = append(all, r)
		}
	}
	revision.Sort(all)
	return all, nil
}

// present returns the digest of the object's present revision; empty if it has none.
func (t *target) present(all []revision.Revision) string {
	spec, _, _ := unstructured.NestedMap(t.Object, "spec")
	for _, r := range slices.Backward(all) {
		if r.Generation == t.GetGeneration() || declares(r, spec) {
			return r.Digest
		}
	}
	return ""
}

// declares compares only non-empty fields: equal specs may differ in empty ones.
func declares(r revision.Revision, spec map[string]any) bool {
	var is map[string]any
	return json.Unmarshal(r.Spec, &is) == nil && equality.Semantic.DeepEqual(sparse(numbers(spec)), sparse(is))
}

// numbers converts the spec's numbers to the types of the JSON decoder.
func numbers(spec map[string]any) (same map[string]any) {
	raw, err := json.Marshal(spec)
	if err != nil || json.Unmarshal(raw, &same) != nil {
		return spec
	}
	return same
}

// sparse drops empty fields.
func sparse(value any) any {
	m, ok := value.(map[string]any)
	if !ok {
		return value
	}
	kept := map[string]any{}
	for k, v := range m {
		if v = sparse(v); v != nil {
			kept[k] = v
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// choose finds the revision to return to.
func (u *undo) choose(t *target, all []revision.Revision) (revision.Revision, error) {
	present := t.present(all)
	if u.to == 0 {
		to, ok := revision.LastSettled(all, present)
		if !ok {
			return to, fmt.Errorf("%s has no earlier spec that settled; see kubectl governor revisions", t)
		}
		return to, nil
	}
	to, ok := revision.Numbered(all, u.to)
	switch {
	case !ok:
		return to, fmt.Errorf("there is no revision %d: the revisions are %s", u.to, ranged(all))
	case to.Digest == present:
		return to, fmt.Errorf("%s has the spec of revision %d already", t, u.to)
	}
	return to, nil
}

func ranged(all []revision.Revision) string {
	if len(all) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d to %d", all[0].Number, all[len(all)-1].Number)
}

// respecified returns the object with the spec of the revision.
func (t *target) respecified(to revision.Revision) (*unstructured.Unstructured, error) {
	if to.APIVersion != t.GetAPIVersion() {
		return nil, fmt.Errorf("revision %d is written in %s, and %s is read in %s: name the type as %s.%s", to.Number, to.APIVersion, t,
			t.GetAPIVersion(), t.mapping.Resource.Resource, versioned(to.APIVersion))
	}
	var spec map[string]any
	if err := json.Unmarshal(to.Spec, &spec); err != nil {
		return nil, fmt.Errorf("revision %d cannot be read: %w", to.Number, err)
	}
	back := t.DeepCopy()
	back.SetManagedFields(nil)
	back.Object["spec"] = spec
	return back, nil
}

// versioned returns VERSION.GROUP, kubectl's suffix of a type.
func versioned(apiVersion string) string {
	group, version, _ := strings.Cut(apiVersion, "/")
	return version + "." + group
}

func (u *undo) enumerate(t *target, all []revision.Revision) {
	if len(all) == 0 {
		u.say("%s in %s has no revisions", t, t.GetNamespace())
		return
	}
	present := t.present(all)
	u.say("%-10s%-10s%-10s%-9s%s", "REVISION", "AGE", "SETTLED", "PRESENT", "BY")
	for i, r := range all {
		is := r.Digest == present && !slices.ContainsFunc(all[i+1:], func(later revision.Revision) bool { return later.Digest == present })
		u.say("%-10d%-10s%-10t%-9t%s", r.Number, brief(u.now().Sub(r.At).Round(time.Second)), r.Settled, is, r.By)
	}
}
