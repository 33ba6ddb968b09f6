package subject

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

// Reasons of the events about an experiment.
const (
	ReasonBegins = "ChaosBegins"
	ReasonEnds   = "ChaosEnds"
)

const (
	// reporter is the program that reports the events.
	reporter = "kubectl-governor"
	// longestNote is the API server's limit.
	longestNote = 1024
)

// Others implements experiment.Instance by the events of other experiments.
func (s *Subject) Others(ctx context.Context) (string, error) {
	list := &eventsv1.EventList{}
	about := client.MatchingFields{"regarding.uid": string(s.uid)}
	if err := s.Client.List(ctx, list, client.InNamespace(s.Key.Namespace), about); err != nil {
		return "", fmt.Errorf("whether another experiment is under way cannot be seen: %w", err)
	}
	newest := map[string]eventsv1.Event{}
	for _, e := range list.Items {
		if known := newest[e.ReportingInstance]; e.ReportingController == reporter && e.ReportingInstance != s.ID && known.EventTime.Before(&e.EventTime) {
			newest[e.ReportingInstance] = e
		}
	}
	for _, e := range newest {
		if e.Reason == ReasonBegins && s.Now().Sub(e.EventTime.Time) < s.Longest {
			return fmt.Sprintf("another experiment is under way since %s: %s", e.EventTime.UTC().Format(time.TimeOnly), e.Note), nil
		}
	}
	return "", nil
}

// Announce implements experiment.Instance: it creates an Event on the instance.
func (s *Subject) Announce(ctx context.Context, a experiment.Act) error {
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Key.Namespace, GenerateName: s.Key.Name + "-chaos-"},
		EventTime:  metav1.NewMicroTime(s.Now()), ReportingController: reporter, ReportingInstance: s.ID,
		Action: a.Manipulation, Reason: ReasonBegins, Type: corev1.EventTypeNormal, Note: s.note(a),
		Regarding: corev1.ObjectReference{
			APIVersion: s.Kind.GroupVersion().String(), Kind: s.Kind.Kind, Namespace: s.Key.Namespace, Name: s.Key.Name, UID: s.uid,
		},
	}
	if a.Outcome != "" {
		event.Reason = ReasonEnds
	}
	if a.Outcome != "" && a.Outcome != experiment.Healed {
		event.Type = corev1.EventTypeWarning
	}
	return s.Client.Create(ctx, event)
}

// note says who does what, and why, or how it ended.
func (s *Subject) note(a experiment.Act) string {
	what := fmt.Sprintf("%s of %s", a.Manipulation, strings.Join(a.Objects, ", "))
	act := fmt.Sprintf("act %d of %d of the chaos experiment with seed %d", a.Number, s.Budget, s.Seed)
	said := fmt.Sprintf("%s does %s, %s. %s", s.User, what, act, a.Sentence)
	if s.Reason != "" {
		said += " Reason: " + s.Reason
	}
	switch {
	case a.Outcome == experiment.Healed:
		said = fmt.Sprintf("Healed %s after %s, %s.", experiment.Rounded(a.HealedAfter.Duration), what, act)
	case a.Outcome != "":
		said = fmt.Sprintf("%s after %s, %s: %s", a.Outcome, what, act, a.Message)
	}
	return strings.ToValidUTF8(said[:min(len(said), longestNote)], "")
}
