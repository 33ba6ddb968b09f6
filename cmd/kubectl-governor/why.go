package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

func whyCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "why TYPE/NAME",
		Short: "Explain the last change of an object",
		Long: `Explain the last change of an object: its author, the steps that Governor took or refused
with their reasons, and what Governor waits for now. The sources are the object, its
history and its events.`,
		Example:           "  kubectl governor why etcdcluster/my-cluster",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: s.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.subject(args)
			if err != nil {
				return err
			}
			return s.why(cmd.Context(), t)
		},
	}
}

func (s *session) why(ctx context.Context, t *target) error {
	book, err := t.book(ctx)
	if err != nil {
		return err
	}
	s.warnOfAbsence(ctx, t.all, t.Unstructured)
	s.say("%s in %s", t, t.GetNamespace())
	s.say("%s", author(t.Unstructured, book))
	s.story(chapter(book.Entries))
	s.present(t)
	s.news(ctx, t)
	return book.Verify()
}

// author names the last author of the spec: from the history if a step was taken for this
// generation, else from the managed fields, which have no time for changes through the
// scale subresource.
func author(obj *unstructured.Unstructured, book history.Log) string {
	for _, e := range slices.Backward(book.Entries) {
		if e.By != "" && e.Generation == obj.GetGeneration() {
			return fmt.Sprintf("Its specification (generation %d) was changed last by %s.", e.Generation, e.By)
		}
	}
	var last metav1.ManagedFieldsEntry
	for _, e := range obj.GetManagedFields() {
		spec := e.Subresource == "" && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.String(), `"f:spec"`)
		if spec && e.Time != nil && !e.Time.Before(last.Time) {
			last = e
		}
	}
	if last.Time == nil {
		return fmt.Sprintf("The author of its specification (generation %d) is not recorded.", obj.GetGeneration())
	}
	return fmt.Sprintf("Its specification (generation %d) was changed last at %s, by %s.",
		obj.GetGeneration(), moment(last.Time.Time), last.Manager)
}

func moment(at time.Time) string { return at.UTC().Format(time.DateTime) + " UTC" }

// pause is the time without a step that separates two runs of entries.
const pause = 10 * time.Minute

// chapter returns the last run of entries for one generation, without a long pause.
func chapter(all []history.Entry) []history.Entry {
	first := max(0, len(all)-1)
	for first > 0 && all[first-1].Generation == all[first].Generation && all[first].At.Sub(end(all[first-1])) < pause {
		first--
	}
	return all[first:]
}

func end(e history.Entry) time.Time {
	at := e.Latest().Add(e.Duration)
	for _, a := range e.Waits {
		at = at.Add(a.Duration)
	}
	return at
}

func (s *session) story(entries []history.Entry) {
	if len(entries) == 0 {
		s.say("Its history records no step: Governor has taken none, or the history was deleted.")
		return
	}
	first, last := entries[0], entries[len(entries)-1]
	s.say("The last steps were taken for generation %d%s, from %s on, and took %s:",
		last.Generation, by(last), moment(first.At), brief(end(last).Sub(first.At)))
	for _, e := range entries {
		s.say("  - %s", sentence(e))
		s.awaited(e)
	}
}

// sentence formats one entry of the history.
func sentence(e history.Entry) string {
	reason := because(e.Step)
	within := strings.TrimSuffix(reason, ".")
	switch e.Result {
	case history.ResultRefused:
		return fmt.Sprintf("It did not take the step %s, due because of %s: %s", e.Step, within, e.Message)
	case history.ResultFailed:
		return fmt.Sprintf("The step %s, because of %s, failed after %s%s: %s", e.Step, within, brief(e.Duration), retried(e), e.Message)
	}
	return fmt.Sprintf("%s: %s", took(e), reason)
}

// retried returns until when a failed step was retried.
func retried(e history.Entry) string {
	if e.Last.IsZero() {
		return ""
	}
	return ", and again until " + moment(e.Last)
}

// present prints the present state.
func (s *session) present(t *target) {
	c := apimeta.FindStatusCondition(conditions(t.Unstructured), lifecycle.ConditionReady)
	switch {
	case c == nil:
		s.say("Now: Governor has not observed it yet.")
		return
	case c.ObservedGeneration != t.GetGeneration():
		s.say("Governor has not yet observed generation %d; the following is about generation %d.", t.GetGeneration(), c.ObservedGeneration)
	}
	state := "not ready"
	if c.Status == metav1.ConditionTrue {
		state = "ready"
	}
	s.say("Now: it is %s since %s, %s: %s", state, moment(c.LastTransitionTime.Time), c.Reason, c.Message)
	for _, is := range [][2]string{
		{lifecycle.ConditionPaused, "It is paused"}, {lifecycle.ConditionRolledBack, "It is rolled back"}, {lifecycle.ConditionDrifted, "It is drifted"},
		{lifecycle.ConditionResourcesBlocked, "Not all that belongs to it can be provided,"}, {lifecycle.ConditionCertificatesDue, "Certificates are due,"},
		{lifecycle.ConditionDeletionHeld, "Its deletion is held,"},
	} {
		if p := apimeta.FindStatusCondition(conditions(t.Unstructured), is[0]); p != nil {
			s.say("%s since %s: %s", is[1], moment(p.LastTransitionTime.Time), p.Message)
		}
	}
}

// conditions returns the conditions of any object; their field is a convention.
func conditions(obj *unstructured.Unstructured) []metav1.Condition {
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	content, _, _ := unstructured.NestedMap(obj.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
		return nil
	}
	return status.Conditions
}

// news prints the last events, if they can be read.
func (s *session) news(ctx context.Context, t *target) {
	list, err := t.all.Resource(eventsv1.SchemeGroupVersion.WithResource("events")).Namespace(t.GetNamespace()).
		List(ctx, metav1.ListOptions{FieldSelector: "regarding.uid=" + string(t.GetUID())})
	if err != nil {
		s.say("Its events cannot be read: %v", err)
		return
	}
	var events eventsv1.EventList
	for _, item := range list.Items {
		var e eventsv1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &e); err == nil {
			events.Items = append(events.Items, e)
		}
	}
	slices.SortStableFunc(events.Items, func(a, b eventsv1.Event) int { return cmp.Compare(heard(a).UnixNano(), heard(b).UnixNano()) })
	const most = 5
	for _, e := range events.Items[max(0, len(events.Items)-most):] {
		s.say("  event %s  %s  %s: %s", moment(heard(e)), e.Type, e.Reason, e.Note)
	}
}

// heard returns the last time of an event.
func heard(e eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return e.EventTime.Time
}
