package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/governor-dev/governor/lifecycle/history"
)

// past are the flags of the command.
type past struct {
	*session
	output

	step, result string
	since        time.Duration
}

// record is the output of -o.
type record struct {
	Entries []history.Entry `json:"entries"`
	// Intact reports that no entry was modified or removed.
	Intact bool `json:"intact"`
	// Fault is the error if the history is not intact.
	Fault string `json:"fault,omitempty"`
}

func historyCommand(s *session) *cobra.Command {
	p := &past{session: s}
	cmd := &cobra.Command{
		Use:   "history TYPE/NAME",
		Short: "List the steps that Governor took or refused for an object",
		Long: fmt.Sprintf(`List the steps that Governor took or refused for an object, oldest first. The history keeps
the last %d entries. Each entry has a digest of the entry before it: if an entry was
modified or removed, the command returns an error.`, history.Limit),
		Example: `  kubectl governor history etcdcluster/my-cluster

  # the failures of the last day
  kubectl governor history etcdcluster/my-cluster --result Failed --since 24h

  # all entries, for a report
  kubectl governor history etcdcluster/my-cluster -o json`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.StringVar(&p.step, "step", "", "only this step, such as AddLearner")
	f.StringVar(&p.result, "result", "", "only Succeeded, Failed or Refused")
	f.DurationVar(&p.since, "since", 0, "only entries younger than this, such as 1h")
	results := []string{string(history.ResultSucceeded), string(history.ResultFailed), string(history.ResultRefused)}
	_ = cmd.RegisterFlagCompletionFunc("result", cobra.FixedCompletions(results, cobra.ShellCompDirectiveNoFileComp))
	p.add(cmd)
	return cmd
}

func (p *past) run(ctx context.Context, args []string) error {
	if known := []string{"", string(history.ResultSucceeded), string(history.ResultFailed), string(history.ResultRefused)}; !slices.Contains(known, p.result) {
		return fmt.Errorf("--result %s is not known: use%s", p.result, strings.Join(known, " "))
	}
	t, err := p.subject(args)
	if err != nil {
		return err
	}
	book, err := t.book(ctx)
	if err != nil {
		return err
	}
	fault := book.Verify()
	r := record{Entries: slices.DeleteFunc(slices.Clone(book.Entries), p.hidden), Intact: fault == nil}
	if fault != nil {
		r.Fault = fault.Error()
	}
	if err := p.write(p.session, r, func() { p.tell(t, r) }); err != nil {
		return err
	}
	return fault
}

func (p *past) hidden(e history.Entry) bool {
	return p.step != "" && !strings.EqualFold(p.step, e.Step.Name) || p.result != "" && p.result != string(e.Result) ||
		p.since != 0 && e.Latest().Before(p.now().Add(-p.since))
}

// book reads the history of the object; without a history it is empty.
func (t *target) book(ctx context.Context) (history.Log, error) {
	name := history.Name(t.GetKind(), t.GetName())
	u, err := t.all.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(t.GetNamespace()).
		Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return history.Log{}, nil
	}
	if err != nil {
		return history.Log{}, fmt.Errorf("the history is in the ConfigMap %s, which cannot be read: %w", name, err)
	}
	raw, _, err := unstructured.NestedString(u.Object, "data", history.Key)
	if err != nil {
		return history.Log{}, err
	}
	return history.Decode(raw)
}

func (p *past) tell(t *target, r record) {
	if len(r.Entries) == 0 {
		p.say("%s in %s: no matching entry", t, t.GetNamespace())
		return
	}
	for _, e := range r.Entries {
		p.say("%s  %s  %s", e.At.UTC().Format(time.DateTime), e.Result, took(e))
		p.say("    %s (generation %d%s, %s)", because(e.Step), e.Generation, by(e), e.Operator)
		if !e.Last.IsZero() {
			p.say("    retried, last recorded at %s", moment(e.Last))
		}
		if e.Message != "" {
			p.say("    %s", e.Message)
		}
		p.grounds(e)
		p.awaited(e)
	}
}

// by names the author of the spec that the entry belongs to.
func by(e history.Entry) string {
	if e.By == "" {
		return ""
	}
	return " by " + e.By
}

// grounds prints the evidence of a decision, its approval or bypass, and its gates.
func (s *session) grounds(e history.Entry) {
	if e.Step.Cause != "" {
		s.say("    cause: %s", e.Step.Cause)
	}
	for _, line := range e.Evidence {
		s.say("    seen: %s", line)
	}
	if a := e.Approval; a != nil {
		s.say("    approved by %s (%s) %s", a.By, a.Name, a.Reason)
	}
	if b := e.Bypass; b != nil {
		s.say("    policies bypassed: %s %s", b.Reason, b.By)
	}
	if asked := passed(e); asked != "" {
		s.say("    passed: %s", asked)
	}
}

// passed lists the gates and policies without an objection to the step.
func passed(e history.Entry) string {
	var names []string
	for _, g := range e.Gates {
		if g.Objection == "" {
			names = append(names, g.Gate)
		}
	}
	for _, policy := range e.Policies {
		objects := func(g history.GateResult) bool { return g.Objection != "" && strings.HasPrefix(g.Gate, policy+"/") }
		if !slices.ContainsFunc(e.Gates, objects) {
			names = append(names, policy)
		}
	}
	return strings.Join(names, ", ")
}

// took formats the step and its duration.
func took(e history.Entry) string {
	if e.Result == history.ResultRefused {
		return e.Step.String()
	}
	return e.Step.String() + " in " + brief(e.Duration)
}

// awaited prints the waits that followed the step.
func (s *session) awaited(e history.Entry) {
	for _, a := range e.Waits {
		s.say("      … %s after %s", a.Step, brief(a.Duration))
	}
}
