package experiment

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Outcome is how an act or an experiment ended.
type Outcome string

// Outcomes.
const (
	// Healed means that the instance serves as before. Completed means that the budget is
	// spent and everything has healed.
	Healed    Outcome = "Healed"
	Completed Outcome = "Completed"
	// TimeUp means that the time for which manipulations may begin is over.
	TimeUp Outcome = "TimeUp"
	// Exhausted means that no manipulation is left that may be done.
	Exhausted Outcome = "Exhausted"
	// Violated means that a promise was broken, and Failed that something could not be done
	// or seen.
	Violated Outcome = "Violated"
	Failed   Outcome = "Failed"
	// Interrupted means that the user ended it.
	Interrupted Outcome = "Interrupted"
	// Withdrawn means that a manipulation was announced and not done, because another experiment
	// announced one at the same moment. Another manipulation follows, so no report has it.
	Withdrawn Outcome = "Withdrawn"
)

// Seen is something that was observed.
type Seen struct {
	// After is the time since the manipulation.
	After metav1.Duration `json:"after"`
	What  string          `json:"what"`
}

// Act is one manipulation of one instance.
type Act struct {
	Number   int       `json:"number"`
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	// Manipulation is its name, and Sentence says it in plain words.
	Manipulation string   `json:"manipulation"`
	Sentence     string   `json:"sentence"`
	Objects      []string `json:"objects"`
	Outcome      Outcome  `json:"outcome,omitempty"`
	// Message says why, if it is not Healed.
	Message string `json:"message,omitempty"`
	// HealedAfter is the time from the manipulation, or from its end if it lasts, until the
	// instance served as before.
	HealedAfter metav1.Duration `json:"healedAfter,omitzero"`
	// Pods is how many were ready before, and LeastReady the lowest number that was seen.
	Pods       int `json:"pods"`
	LeastReady int `json:"leastReady"`
	// NotReadyFor is how long the condition Ready was not True.
	NotReadyFor metav1.Duration `json:"notReadyFor"`
	// Lost names the PersistentVolumeClaims and members that were there before, and not any more
	// after the act, or with another identity. LostUnknown says why that could not be seen.
	Lost        []string `json:"lost"`
	LostUnknown string   `json:"lostUnknown,omitempty"`
	// Seen are the condition Ready as it changed, and Steps what the operator did.
	Seen  []Seen   `json:"seen,omitempty"`
	Steps []string `json:"steps,omitempty"`
}

// LeftOut is a manipulation that was not done to an instance, and why.
type LeftOut struct {
	Instance     string `json:"instance"`
	Manipulation string `json:"manipulation"`
	Reason       string `json:"reason"`
}

// Report is what an experiment did and what was seen.
type Report struct {
	Seed    uint64    `json:"seed"`
	Limits  Limits    `json:"limits"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Outcome Outcome   `json:"outcome"`
	// Message says why it ended, if it is not Completed.
	Message string    `json:"message,omitempty"`
	Acts    []Act     `json:"acts"`
	LeftOut []LeftOut `json:"leftOut,omitempty"`
	// NotMeasured are sentences about what an experiment cannot see.
	NotMeasured []string `json:"notMeasured"`
}

// notMeasured is what only a client of the application can tell.
var notMeasured = []string{
	"Requests of clients: an experiment is no client of the application. Write and read while it runs to measure them.",
	"Data: volumes and members were compared, and the data in them was not read.",
	"Network: a NetworkPolicy has an effect only where the network plugin enforces it.",
}

// Good reports whether no promise was broken and everything could be done and seen.
func (r Report) Good() bool {
	return r.Outcome != Violated && r.Outcome != Failed && r.Outcome != Interrupted
}

// Summary says in a sentence how the experiment ended.
func (r Report) Summary() string {
	healed, longest := 0, time.Duration(0)
	for _, a := range r.Acts {
		if a.Outcome == Healed {
			healed, longest = healed+1, max(longest, a.HealedAfter.Duration)
		}
	}
	said := fmt.Sprintf("%s: %d of %d manipulations in %s, %d healed", r.Outcome, len(r.Acts), r.Limits.Budget,
		r.Ended.Sub(r.Began).Round(time.Second), healed)
	if healed > 0 {
		said += fmt.Sprintf(", the slowest after %s", Rounded(longest))
	}
	said += "; lost: " + r.lost() + "."
	if r.Message != "" {
		said += " " + r.Message
	}
	return said
}

// lost names what the acts cost, of volumes and members.
func (r Report) lost() string {
	var all []string
	for _, a := range r.Acts {
		if a.LostUnknown != "" {
			all = append(all, "not known of "+a.Instance)
		}
		for _, what := range a.Lost {
			all = append(all, what+" of "+a.Instance)
		}
	}
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	return list(slices.Compact(all))
}

// Rounded is a duration for people: to a tenth of a second below ten seconds.
func Rounded(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
