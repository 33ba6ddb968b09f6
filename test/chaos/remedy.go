package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// stall is the condition Stalled: the instance asks for a person.
type stall struct{ reason, message string }

func (s stall) String() string { return s.reason + ": " + s.message }

// remedy is what a person does about a stall.
type remedy struct {
	// says matches the words that tell a person to do it. Its groups are what the words name.
	says *regexp.Regexp
	// do does it; nil if a person can do nothing to this instance. words are the match and its groups.
	do func(ctx context.Context, v *adversary, words []string) error
}

// remedyOf finds what the message tells a person to do. An unknown reason has no remedy, and neither
// has a message that does not say what the adversary then does.
func (s stall) remedyOf() (remedy, []string, error) {
	known, ok := remedies[s.reason]
	if !ok {
		return remedy{}, nil, fmt.Errorf("the adversary knows no remedy for the reason %s: %q", s.reason, s.message)
	}
	for _, r := range known {
		if words := r.says.FindStringSubmatch(s.message); words != nil {
			return r, words, nil
		}
	}
	return remedy{}, nil, fmt.Errorf("the message of %s names none of the remedies that the adversary knows: %q", s.reason, s.message)
}

const (
	// readsFor is how long a message stands before a person acts: the operator may be about to.
	readsFor = 3 * time.Second
	// actsEvery is the time between two acts, and actsAtMost how often a person does what one message says.
	actsEvery, actsAtMost = 8 * time.Second, 3
	// consultsFor is how long a person does what an instance says before taking back what users did.
	consultsFor = 90 * time.Second
)

// errStalled says that the instance asks for a person.
var errStalled = errors.New("the instance is stalled")

// person reads the condition Stalled of the instance, and does what it says.
type person struct {
	heard stall
	since time.Time
	acted time.Time
	done  map[stall]int
	told  map[stall]bool
}

// stalled is what the instance asks for now; the zero value if it asks for nothing or does not answer.
func (s *subject) stalled(ctx context.Context) stall {
	conditions, err := s.conditions(ctx)
	if err != nil || !meta.IsStatusConditionTrue(conditions, "Stalled") {
		return stall{}
	}
	c := meta.FindStatusCondition(conditions, "Stalled")
	return stall{c.Reason, c.Message}
}

// attend does what the instance says once that has stood for a while.
func (v *adversary) attend(ctx context.Context) error {
	now, p := v.stalled(ctx), &v.person
	if now == (stall{}) {
		p.heard = now
		return nil
	}
	if now != p.heard {
		p.heard, p.since = now, time.Now()
		p.told[now] = true
	}
	if time.Since(p.since) < readsFor || time.Since(p.acted) < actsEvery || p.done[now] >= actsAtMost {
		return fmt.Errorf("%w: %s", errStalled, now)
	}
	r, words, err := now.remedyOf()
	if err != nil || r.do == nil {
		return errors.Join(errStalled, err)
	}
	p.acted = time.Now()
	p.done[now]++
	err = r.do(ctx, v, words)
	v.say("            a person does what %s says (%.80q): %s", now.reason, words[0], outcomeOf(err))
	return fmt.Errorf("%w: %s", errStalled, now)
}

func outcomeOf(err error) string {
	if err != nil {
		return err.Error()
	}
	return moveDone
}

// consult has a person do what the instance says while it stalls by what users did.
func (v *adversary) consult(ctx context.Context) {
	quiet := 0
	_ = await(ctx, consultsFor, time.Second, func(ctx context.Context) error {
		if err := v.attend(ctx); err != nil {
			quiet = 0
			return err
		}
		if quiet++; quiet < 3 {
			return errNotYet
		}
		return nil
	})
}

// acts are the reasons that a person acted upon.
func (p person) acts() []string {
	reasons := map[string]bool{}
	for s := range p.done {
		reasons[s.reason] = true
	}
	return slices.Sorted(maps.Keys(reasons))
}
