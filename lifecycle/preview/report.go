package preview

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// Update, Delete and Rollback are the questions that [lifecycle.AnnotationPreview] asks.
const (
	Update = "update"
	Delete = "delete"
	// Rollback is an Update to an earlier spec. The answer has the spec that can be declared:
	// with the present values of fields that cannot be set back, see Retain of [lifecycle.Abilities].
	Rollback = "rollback"
)

// Report is all that a preview tells a user.
type Report struct {
	Plan
	// Resources are created, configured or deleted on the way, without a step.
	Resources []Resource `json:"resources,omitempty"`
	// Paused says that nothing of it happens before the object is resumed.
	Paused bool `json:"paused,omitempty"`
	// PausedBy says who pauses it, and what resumes it.
	PausedBy string `json:"pausedBy,omitempty"`
	// Unknowns are sentences about what could not be known.
	Unknowns []string `json:"unseen,omitempty"`
	// Kept says which fields a rollback leaves as they are, and why.
	Kept []string `json:"kept,omitempty"`
	// Omitted is how many more steps there are than fit in a report.
	Omitted int `json:"omitted,omitempty"`
	// Operator is the version that made the preview.
	Operator string `json:"operator"`
}

// Resource is a change of one object that cannot hurt.
type Resource struct {
	// Verb is Created, Configured or Pruned.
	Verb string `json:"verb"`
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Fields are those that change, of Configured.
	Fields []Field `json:"fields,omitempty"`
}

// Field is a change of one field; values are JSON, empty if there is none, and always
// empty of a Secret.
type Field struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Changes reports whether anything is done at all.
func (r Report) Changes() bool { return len(r.Actions()) > 0 || len(r.Resources) > 0 }

// Terminal is a report of nothing but how it ends.
func Terminal(d lifecycle.Decision) Report { return Report{Plan: Plan{}.end(d)} }

// Expect returns the plan with how long each step usually takes, where that is known.
func (p Plan) Expect(usual func(name string) (time.Duration, bool)) Plan {
	steps := make([]Step, len(p.Steps))
	for i, s := range p.Steps {
		if took, known := usual(s.Name); known {
			s.Expected = metav1.Duration{Duration: took}
		}
		steps[i] = s
	}
	p.Steps = steps
	return p
}

// Encode returns the report as JSON of at most that many bytes: steps of the end are
// left out, and then resources, if it is longer.
func (r Report) Encode(limit int) (string, error) {
	if r.Steps == nil {
		r.Steps = []Step{}
	}
	raw, err := json.Marshal(r)
	for err == nil && len(raw) > limit && r.shorten() {
		raw, err = json.Marshal(r)
	}
	return string(raw), err
}

// shorten leaves out half of what can be left out, and reports whether it could.
func (r *Report) shorten() bool {
	if n := len(r.Steps); n > 1 {
		r.Omitted += n - n/2
		r.Steps = r.Steps[:n/2]
		return true
	}
	if n := len(r.Resources); n > 0 {
		r.Resources = r.Resources[:n/2]
		r.Unknowns = []string{"There are more resources than are shown."}
		return true
	}
	return false
}

// Decode reads what Encode has written, and reports whether it is a report at all.
func Decode(raw string) (Report, bool) {
	var r Report
	err := json.Unmarshal([]byte(raw), &r)
	return r, err == nil && r.Outcome != lifecycle.OutcomeNone
}
