package publish

import (
	"github.com/governor-dev/governor/engine/internal/metrics"
)

// Measure counts what was done, and moves the object to its new state.
func (r *Result) Measure(p *metrics.Progress) {
	for _, c := range r.Changes {
		metrics.Writes.WithLabelValues(p.App, c.Kind, string(c.Verb)).Inc()
	}
	for _, refusal := range r.Refusals {
		metrics.Holds.WithLabelValues(p.App, refusal.Gate).Inc()
	}
	if r.Taken != nil {
		result := "ok"
		if r.Taken.Err != nil {
			result = "error"
		}
		metrics.Steps.WithLabelValues(p.App, r.Taken.Step.Name, string(r.Taken.Step.Class), result).Inc()
	}
	state := string(r.Decision.Outcome)
	if r.Paused {
		state = "Paused"
	}
	p.Note(r.Key, state)
	p.Drift(r.Key, len(r.Drifts) > 0)
}
