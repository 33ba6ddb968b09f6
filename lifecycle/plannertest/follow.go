package plannertest

import (
	"fmt"

	"k8s.io/utils/dump"

	"github.com/governor-dev/governor/lifecycle"
)

// Limit is the maximum number of decisions until the rules settle.
const Limit = 500

// Judge follows the rules from one world and returns their mistake, or nil.
func (s Subject[T, W]) Judge(want T, seen W) *Finding { return newExplorer(s).judge(want, seen) }

// explorer judges worlds and caches those from which the rules settle.
type explorer[T lifecycle.Resource, W any] struct {
	Subject[T, W]
	planner watched[T, W]
	well    map[string]bool
}

func newExplorer[T lifecycle.Resource, W any](s Subject[T, W]) *explorer[T, W] {
	return &explorer[T, W]{Subject: s, planner: watched[T, W]{s.Planner}, well: map[string]bool{}}
}

// path is the sequence of decisions from one world to its end.
type path[T lifecycle.Resource, W any] struct {
	*explorer[T, W]
	want    T
	seen    W
	visited map[string]int // the length of the story, by world
	story   []string
}

func (c *explorer[T, W]) judge(want T, seen W) *Finding {
	begin := &Finding{Want: written(want), Seen: c.tell(seen)}
	j := &path[T, W]{explorer: c, want: want.DeepCopyObject().(T), seen: seen, visited: map[string]int{}}
	b := caught(func() {
		for !j.ends() {
		}
	})
	if b == nil {
		for key := range j.visited {
			c.well[key] = true
		}
		return nil
	}
	begin.Fault, begin.Says, begin.Story = b.fault, b.says, j.story
	return begin
}

// cut truncates the story of rules that do not terminate.
func cut(story []string) []string {
	const shown = 20
	if len(story) <= shown {
		return story
	}
	return append(story[:shown:shown], fmt.Sprintf("and so on, %d in all", len(story)))
}

func fault(f Fault, format string, args ...any) { panic(purityError{f, fmt.Sprintf(format, args...)}) }

// ends makes one decision and reports whether it was the last.
func (j *path[T, W]) ends() bool {
	key := dump.ForHash(j.want) + dump.ForHash(j.seen)
	if j.well[key] {
		return true
	}
	if at, been := j.visited[key]; been {
		j.story = append(j.story, fmt.Sprintf("and again as at %d, for ever", at+1))
		fault(FaultLoops, "the rules go round in a circle of %d decisions.", len(j.story)-1-at)
	}
	if len(j.story) >= Limit {
		j.story = cut(j.story)
		fault(FaultNonTerminating, "the rules do not settle within %d decisions.", Limit)
	}
	j.visited[key] = len(j.story)
	return j.decide()
}

func (j *path[T, W]) decide() bool {
	if _, err := j.planner.Resources(j.want, j.seen); err != nil {
		return j.allowed(lifecycle.Block("CannotRender", err.Error()))
	}
	d := j.planner.Next(j.want, j.seen, j.now())
	before := dump.ForHash(j.want)
	j.planner.Status(j.want, j.seen)
	j.planner.Conditions(j.want, j.seen, d)
	j.story = append(j.story, d.String())
	told := dump.ForHash(j.want) != before
	switch d.Outcome {
	case lifecycle.OutcomeSettled:
		return j.rests(told)
	case lifecycle.OutcomeProceed, lifecycle.OutcomeWait:
		return j.steps(d, told)
	case lifecycle.OutcomeRetry:
		return !told && j.allowed(d) // otherwise it waited for the status, which is written now
	}
	return j.allowed(d)
}

// rests at a world that is settled. What the status remembers may bring another wish.
func (j *path[T, W]) rests(told bool) bool {
	if told {
		return false
	}
	if j.Kept == nil {
		return true
	}
	if err := j.Kept(j.want, j.seen); err != nil {
		fault(FaultNotConverged, "the rules settle, but %v.", err)
	}
	return true
}

// allowed ends the journey with a decision that settles nothing.
func (j *path[T, W]) allowed(d lifecycle.Decision) bool {
	if j.may(j.want, j.seen, d) {
		return true
	}
	switch d.Outcome {
	case lifecycle.OutcomeBlocked:
		fault(FaultStops, "the rules end blocked: %s: %s", d.Reason, d.Message)
	case lifecycle.OutcomeWait:
		fault(FaultGateDeadlock, "%s Nothing else is done meanwhile, so nothing makes it pass.", d.Message)
	case lifecycle.OutcomeNone:
		fault(FaultNoDecision, "Next says nothing; lifecycle.First says Settled when no rule speaks.")
	}
	fault(FaultNoDecision, "Next wants to try again, though nothing has changed: %s. What is awaited is a Wait.", d.Reason)
	return true
}

// steps takes the step, or lets the wait end well.
func (j *path[T, W]) steps(d lifecycle.Decision, told bool) bool {
	during, after := j.planner.Effect(j.want, j.seen, d.Step)
	if d.Outcome == lifecycle.OutcomeWait {
		j.listens(d)
	} else if r := lifecycle.Judge(j.Gates, j.want, j.seen, during, d.Step); len(r) > 0 {
		return j.allowed(lifecycle.Held(d.Step, r[0]))
	}
	j.careful(d, during, "during")
	j.careful(d, after, "after")
	if !told && dump.ForHash(after) == dump.ForHash(j.seen) {
		if j.may(j.want, j.seen, d) {
			return true
		}
		fault(FaultStuck, "what Effect says of %q changes nothing, so it would be decided for ever.", d.Step)
	}
	j.seen = after
	return false
}

// listens checks that a rule speaks when the deadline of a wait has passed.
func (j *path[T, W]) listens(d lifecycle.Decision) {
	if d.Deadline.IsZero() {
		return
	}
	late := j.planner.Next(j.want, j.seen, d.Deadline)
	if late.Outcome == lifecycle.OutcomeWait && late.Step.Same(d.Step) && !late.Deadline.IsZero() && !late.Deadline.After(d.Deadline) {
		fault(FaultIgnoresDeadline, "the wait for %q has a deadline, and when it has passed no rule says so.", d.Step)
	}
}

// careful checks that a step breaks nothing that was whole before it.
func (j *path[T, W]) careful(d lifecycle.Decision, world W, when string) {
	if j.Safe == nil || j.Safe(j.seen) != nil {
		return
	}
	if err := j.Safe(world); err != nil {
		fault(FaultUnsafe, "%s %q %v: %s", when, d.Step, err, j.tell(world))
	}
}
