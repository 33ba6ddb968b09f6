package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

const (
	// lookEvery is how often an instance is looked at.
	lookEvery = time.Second
	// undoWithin is how long undoing may take when the user has interrupted the experiment.
	undoWithin = 30 * time.Second
)

// errNotAlone says that another experiment acts on the instance, or may.
var errNotAlone = errors.New("not alone")

// Experiment is what is to be done.
type Experiment struct {
	Instances []Instance
	// Catalogue are the manipulations to choose from.
	Catalogue chaos.Catalogue
	Limits    Limits
	// Seed decides which manipulations are done, in which order and to which objects.
	Seed uint64
	Now  func() time.Time
	// Progress gets a sentence for everything that happens; nil if it is not read.
	Progress func(string)
}

// run is an experiment under way.
type run struct {
	*Experiment

	mu     sync.Mutex
	decks  *decks
	busy   map[int]bool
	begun  int
	ends   time.Time
	report Report
}

// Run does the experiment and returns its report. It ends early when ctx ends, and then
// undoes what lasts.
func (e *Experiment) Run(ctx context.Context) Report {
	r := e.start()
	var workers sync.WaitGroup
	for range min(e.Limits.AtOnce, len(e.Instances)) {
		workers.Go(func() { r.work(ctx) })
	}
	workers.Wait()
	slices.SortFunc(r.report.Acts, func(a, b Act) int { return cmp.Compare(a.Number, b.Number) })
	r.report.Ended = e.Now()
	if ctx.Err() != nil {
		r.end(Interrupted, "What lasts was undone.")
	}
	r.end(Completed, "")
	return r.report
}

func (e *Experiment) start() *run {
	now := e.Now()
	return &run{
		Experiment: e, decks: newDecks(e.Seed, len(e.Instances), e.Catalogue), busy: map[int]bool{}, ends: now.Add(e.Limits.For.Duration),
		report: Report{Seed: e.Seed, Limits: e.Limits, Began: now, Acts: []Act{}, NotMeasured: notMeasured},
	}
}

// end notes how the experiment ended, if that is not known yet.
func (r *run) end(how Outcome, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report.Outcome == "" {
		r.report.Outcome, r.report.Message = how, message
	}
}

func (r *run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.Outcome != ""
}

func (r *run) say(format string, args ...any) {
	if r.Progress != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Progress(fmt.Sprintf(format, args...))
	}
}

// work does one act after another, until the experiment is over.
func (r *run) work(ctx context.Context) {
	for {
		i, number, ok := r.take()
		if !ok {
			return
		}
		done := r.act(ctx, i, number)
		r.mu.Lock()
		delete(r.busy, i)
		more := r.begun < r.Limits.Budget
		r.mu.Unlock()
		if !done || more && !wait(ctx, r.Limits.Pause.Duration) {
			return
		}
	}
}

// take chooses an instance that is free, if a manipulation may still begin, and its number.
func (r *run) take() (instance, number int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report.Outcome != "" || r.begun >= r.Limits.Budget {
		return 0, 0, false
	}
	var free []int
	for i := range r.Instances {
		if !r.busy[i] {
			free = append(free, i)
		}
	}
	i := r.decks.next(free)
	r.busy[i] = true
	r.begun++
	return i, r.begun, true
}

// act does one manipulation to the instance and waits until it has healed. It returns
// false when nothing more is to be done.
func (r *run) act(ctx context.Context, i, number int) bool {
	instance := r.Instances[i]
	before, a, done, ok := r.beginAlone(ctx, i, number)
	if !ok {
		return false
	}
	o := &observation{run: r, instance: instance, before: before, act: a, done: done, began: r.Now()}
	o.watch(ctx)
	r.finish(ctx, instance, o.act)
	return o.act.Outcome == Healed
}

// beginAlone begins a manipulation when the instance permits it. Two experiments that announce one
// at the same moment both withdraw, and wait for different times.
func (r *run) beginAlone(ctx context.Context, i, number int) (before State, a Act, done Done, ok bool) {
	instance := r.Instances[i]
	for {
		if before, ok = r.awaitFit(ctx, instance); !ok {
			return before, a, done, false
		}
		a, done, ok = r.begin(ctx, i, before, Act{
			Number: number, Instance: instance.String(), Pods: before.Serving(), LeastReady: before.Serving(), Lost: []string{},
		})
		if a.Outcome != Withdrawn {
			return before, a, done, ok
		}
		r.say("%s is waited for: %s", instance, a.Message)
		if !wait(ctx, lookEvery+rand.N(4*lookEvery)) {
			return before, a, done, false
		}
	}
}

// awaitFit returns the state of the instance when a manipulation may begin.
func (r *run) awaitFit(ctx context.Context, instance Instance) (State, bool) {
	for said := ""; ; {
		s, why, err := r.look(ctx, instance)
		switch {
		case ctx.Err() != nil || r.over():
			return s, false
		case err != nil:
			why = err.Error()
		case s.Ended() != "":
			r.end(Failed, fmt.Sprintf("%s: %s.", instance, s.Ended()))
			return s, false
		case why == "" && r.Now().Before(r.ends):
			return s, true
		}
		if !r.Now().Before(r.ends) {
			r.end(TimeUp, "--for "+r.Limits.For.Duration.String()+" is over"+because(instance, why)+".")
			return s, false
		}
		if why != said {
			said = why
			r.say("%s is waited for: %s", instance, why)
		}
		if !wait(ctx, lookEvery) {
			return s, false
		}
	}
}

// look returns the state of the instance, and why no manipulation may begin now.
func (r *run) look(ctx context.Context, instance Instance) (State, string, error) {
	s, err := instance.Look(ctx)
	why := s.Unfit()
	if err == nil && why == "" {
		why, err = instance.Others(ctx)
	}
	return s, why, err
}

func because(instance Instance, why string) string {
	if why == "" {
		return ""
	}
	return fmt.Sprintf("; %s was waited for: %s", instance, why)
}

// begin draws manipulations until one can be done, announces it and does it.
func (r *run) begin(ctx context.Context, i int, s State, a Act) (Act, Done, bool) {
	instance, impossible := r.Instances[i], map[string]bool{}
	for {
		m, ok := r.draw(i, s, impossible)
		if !ok {
			r.end(Exhausted, fmt.Sprintf("No manipulation is left that may be done to %s.", instance))
			return a, Done{}, false
		}
		a.At, a.Manipulation, a.Sentence = r.Now(), m.Name, m.Sentence
		done, err := r.do(ctx, instance, m, &a)
		var left error // of what was done in part
		if err != nil && done.Undo != nil {
			left = undo(ctx, done)
		}
		switch {
		case errors.Is(err, errNotAlone):
			a.Outcome, a.Message = Withdrawn, err.Error()
			if err := instance.Announce(context.WithoutCancel(ctx), a); err != nil {
				r.end(Failed, fmt.Sprintf("%s: its withdrawal cannot be announced: %s.", instance, err))
				a.Outcome = ""
			}
			return a, done, false
		case errors.Is(err, ErrImpossible) && left == nil:
			impossible[m.Name] = true
			r.leaveOut(instance, m.Name, err.Error())
		case ctx.Err() != nil && left == nil:
			return a, done, false // the user has ended it
		case err != nil:
			err = errors.Join(err, left)
			r.end(Failed, fmt.Sprintf("%s of %s: %s.", m.Name, instance, err))
			return a, done, false
		default:
			r.say("%d of %d: %s of %s %v", a.Number, r.Limits.Budget, m.Name, instance, a.Objects)
			return a, done, true
		}
	}
}

func (r *run) draw(i int, s State, impossible map[string]bool) (draw, bool) {
	return r.decks.of[i].draw(func(m chaos.Manipulation) bool {
		why := s.Objection(m)
		if why != "" {
			r.leaveOut(r.Instances[i], m.Name, why)
		}
		return why != "" || impossible[m.Name]
	})
}

func (r *run) leaveOut(instance Instance, name, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := LeftOut{Instance: instance.String(), Manipulation: name, Reason: why}
	if !slices.Contains(r.report.LeftOut, l) {
		r.report.LeftOut = append(r.report.LeftOut, l)
	}
}

// do announces the manipulation, looks once more for another experiment, and does it: what cannot
// be announced is not done.
func (r *run) do(ctx context.Context, instance Instance, m draw, a *Act) (Done, error) {
	var err error
	if a.Objects, err = instance.Names(ctx, m.Manipulation, m.target); err != nil {
		return Done{}, err
	}
	if err := instance.Announce(ctx, *a); err != nil {
		return Done{}, fmt.Errorf("it cannot be announced, so it is not done: %w", err)
	}
	switch other, err := instance.Others(ctx); {
	case err != nil:
		return Done{}, fmt.Errorf("%w: %w", errNotAlone, err)
	case other != "":
		return Done{}, fmt.Errorf("%w: %s", errNotAlone, other)
	}
	done, err := instance.Do(ctx, m.Manipulation, m.target)
	if len(done.Objects) > 0 {
		a.Objects = done.Objects
	}
	return done, err
}

// finish adds what the operator did to the act, announces how it ended, and ends the
// experiment if a promise was broken.
func (r *run) finish(ctx context.Context, instance Instance, a Act) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	a.Steps, _ = instance.Steps(ctx, a.At) // the report says what else was seen
	if err := instance.Announce(ctx, a); err != nil && a.Message == "" {
		a.Message = "its end cannot be announced: " + err.Error()
	}
	r.mu.Lock()
	r.report.Acts = append(r.report.Acts, a)
	r.mu.Unlock()
	if a.Outcome == Violated || a.Outcome == Failed {
		r.end(a.Outcome, fmt.Sprintf("%s after %s of %s: %s.", a.Instance, a.Manipulation, list(a.Objects), a.Message))
	}
	r.say("%d of %d: %s %s %s", a.Number, r.Limits.Budget, a.Outcome, Rounded(a.HealedAfter.Duration), a.Message)
}

// wait returns false if the context ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
