package memory

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// enough waits after one step are kept: a world that goes to and fro fills no history.
const enough = 16

// Waits measures how long what follows a step takes, for the history: of most steps
// the waiting is the longer part. It is kept in memory, so a restart loses a measure
// and never makes a write.
type Waits struct {
	mu   sync.Mutex
	open map[types.NamespacedName]*interval
}

// interval is the time since a step of one object.
type interval struct {
	step  lifecycle.Step // what is waited for; the zero value if nothing is
	since time.Time
	done  []history.WaitRecord
}

// Note takes in the decision of a turn and returns what was waited for, once, when
// the wait is over: before the next step, or when everything is as declared. What
// was waited for without a step before it belongs to no entry.
func (w *Waits) Note(key types.NamespacedName, d lifecycle.Decision, acted bool, now time.Time) []history.WaitRecord {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.open[key]
	if i != nil {
		i.follow(d, now)
	}
	over := acted || d.Outcome == lifecycle.OutcomeSettled
	if over {
		delete(w.open, key)
	}
	if acted {
		w.begin(key)
	}
	if i == nil || !over {
		return nil
	}
	return i.done
}

func (w *Waits) begin(key types.NamespacedName) {
	if w.open == nil {
		w.open = map[types.NamespacedName]*interval{}
	}
	w.open[key] = &interval{}
}

// Forget drops an object that is gone.
func (w *Waits) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, key)
}

// follow ends the present wait if the decision is about something else. One that a
// repair ends, or that leads nowhere, did not take its usual time.
func (i *interval) follow(d lifecycle.Decision, now time.Time) {
	waiting := d.Outcome == lifecycle.OutcomeWait && !d.IsHeld()
	if d.Outcome == lifecycle.OutcomeRetry || waiting && d.Step.Same(i.step) {
		return
	}
	bad := d.Outcome == lifecycle.OutcomeBlocked || d.IsRepair() && i.step.Intent != lifecycle.IntentRepair
	if i.step.Name != "" && !bad && len(i.done) < enough {
		i.done = append(i.done, history.WaitRecord{Step: i.step, Duration: now.Sub(i.since)})
	}
	i.step = lifecycle.Step{}
	if waiting {
		i.step, i.since = d.Step, now
	}
}
