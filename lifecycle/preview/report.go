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

// Report is the result of a preview.
type Report struct {
	Plan
	// Resources are created, configured or deleted without a step.
	Resources []Resource `json:"resources,omitempty"`
	// Paused reports that the steps wait until the object is resumed.
	Paused bool `json:"paused,omitempty"`
	// PausedBy names the origin of the pause, and how to resume.
	PausedBy string `json:"pausedBy,omitempty"`
	// Unknowns describe what the plan could not determine.
	Unknowns []string `json:"unknowns,omitempty"`
	// Kept lists the fields that a rollback keeps, with the reasons.
	Kept []string `json:"kept,omitempty"`
	// Omitted is the number of steps that do not fit in the report.
	Omitted int `json:"omitted,omitempty"`
	// Operator is the version of the operator.
	Operator string `json:"operator"`
}

// Resource is a change of one object without a step.
type Resource struct {
	// Verb is Created, Configured or Pruned.
	Verb string `json:"verb"`
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Fields are the changed fields of a Configured object.
	Fields []Field `json:"fields,omitempty"`
}

// Field is a change of one field. Values are JSON; they are empty if unset, and always for a
// Secret.
type Field struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Changes reports whether anything is done at all.
func (r Report) Changes() bool { return len(r.Actions()) > 0 || len(r.Resources) > 0 }

// Terminal returns a report without steps that ends with the decision.
func Terminal(d lifecycle.Decision) Report { return Report{Plan: Plan{}.end(d)} }

// Expect sets the usual duration of each step, if it is known.
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

// Encode returns the report as JSON of at most limit bytes. It omits the last steps, and
// then resources, if the report is longer.
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

// shorten omits half of the steps, or else of the resources, and reports whether it could.
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

// Decode reads the output of Encode, and reports whether it is a report.
func Decode(raw string) (Report, bool) {
	var r Report
	err := json.Unmarshal([]byte(raw), &r)
	return r, err == nil && r.Outcome != lifecycle.OutcomeNone
}
