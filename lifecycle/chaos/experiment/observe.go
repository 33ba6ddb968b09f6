package experiment

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observation follows an instance from a manipulation until it has healed.
type observation struct {
	*run

	instance Instance
	before   State
	act      Act
	done     Done
	// began is when the manipulation was done, and ended when what lasts was undone.
	began, ended time.Time
	// last is what was said of the condition Ready, notReady since when it is not True.
	last     string
	notReady time.Time
	// healthy is how often in a row everything was as before.
	healthy int
}

// watch looks at the instance until it has healed, a promise is broken, or the user ends
// the experiment. What lasts is undone in any case.
func (o *observation) watch(ctx context.Context) {
	if o.last = o.before.Reason; o.done.Undo == nil {
		o.ended = o.began
	}
	for o.act.Outcome == "" {
		if !wait(ctx, lookEvery) {
			o.act.Outcome = Interrupted
			break
		}
		o.look(ctx)
		o.undoWhenDue(ctx)
	}
	if !o.notReady.IsZero() {
		o.act.NotReadyFor.Duration += o.Now().Sub(o.notReady)
	}
	if o.ended.IsZero() {
		o.undo(ctx)
	}
	o.compare(ctx)
}

// healedAfterLooks is how often in a row everything must be as before: an operator needs a
// moment to notice what was done.
const healedAfterLooks = 2

func (o *observation) look(ctx context.Context) {
	s, err := o.instance.Look(ctx)
	if err != nil {
		o.saw("cannot be seen: " + err.Error())
		o.judgeTime(err.Error())
		return
	}
	o.note(s)
	if why := s.violation(o.before); why != "" {
		o.act.Outcome, o.act.Message = Violated, why
		return
	}
	healed, err := o.healed(ctx, s)
	if healed {
		o.healthy++
	} else {
		o.healthy = 0
	}
	switch {
	case err != nil:
		o.judgeTime(err.Error())
	case o.healthy >= healedAfterLooks:
		o.act.Outcome, o.act.HealedAfter.Duration = Healed, o.Now().Sub(o.ended)-(healedAfterLooks-1)*lookEvery
	case !healed:
		o.judgeTime(o.missing(s))
	}
}

func (o *observation) healed(ctx context.Context, s State) (bool, error) {
	if o.ended.IsZero() || !s.recovered(o.before) {
		return false, nil
	}
	return o.done.Healed(ctx)
}

// missing says what is not as before.
func (o *observation) missing(s State) string {
	switch {
	case !s.Ready:
		return "it is not Ready: " + s.Reason + " " + s.Message
	case !s.recovered(o.before):
		return fmt.Sprintf("%d of %d pods are ready", s.Serving(), max(len(s.Pods), o.before.Serving()))
	}
	return list(o.act.Objects) + " is not as before"
}

// judgeTime ends the act if the instance has had its time to heal.
func (o *observation) judgeTime(missing string) {
	if !o.ended.IsZero() && o.Now().Sub(o.ended) > o.Limits.HealWithin.Duration {
		o.act.Outcome, o.act.Message = Violated, fmt.Sprintf("it has not healed within %s: %s", o.Limits.HealWithin.Duration, strings.TrimSpace(missing))
	}
}

// note remembers what has changed.
func (o *observation) note(s State) {
	o.act.LeastReady = min(o.act.LeastReady, s.Serving())
	if s.Ready && !o.notReady.IsZero() {
		o.act.NotReadyFor.Duration += o.Now().Sub(o.notReady)
		o.notReady = time.Time{}
	}
	if !s.Ready && o.notReady.IsZero() {
		o.notReady = o.Now()
	}
	if s.Reason != o.last {
		o.last = s.Reason
		o.saw(fmt.Sprintf("Ready=%t %s: %s", s.Ready, s.Reason, s.Message))
	}
}

func (o *observation) saw(what string) {
	if n := len(o.act.Seen); n > 0 && o.act.Seen[n-1].What == what {
		return
	}
	o.act.Seen = append(o.act.Seen, Seen{After: metav1.Duration{Duration: o.Now().Sub(o.began)}, What: what})
}

// undoWhenDue undoes what lasts when its time is over, or the experiment is.
func (o *observation) undoWhenDue(ctx context.Context) {
	due := o.Now().Sub(o.began) >= o.Limits.Lasting.Duration || o.over() || o.act.Outcome != ""
	if o.ended.IsZero() && due {
		o.undo(ctx)
	}
}

func (o *observation) undo(ctx context.Context) {
	err := undo(ctx, o.done)
	o.ended = o.Now()
	if err != nil {
		o.act.Outcome, o.act.Message = Failed, "it could not be undone: "+err.Error()
		return
	}
	o.saw("undone")
}

// undo works also when the user has ended the experiment.
func undo(ctx context.Context, done Done) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	return done.Undo(ctx)
}

// compare notes what the instance has lost since before the act.
func (o *observation) compare(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	s, err := o.instance.Look(ctx)
	if err != nil {
		o.act.LostUnknown = err.Error()
		return
	}
	o.act.Lost = append(o.act.Lost, s.lost(o.before)...)
}

func list(names []string) string { return strings.Join(names, ", ") }
