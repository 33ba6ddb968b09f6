package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/preview"
)

// tell prints the plan: the steps in their order with the availability during each, the
// changed resources, and the end.
func (p *plan) tell(t *target, r preview.Report) {
	p.say("%s in %s: %s", t, t.GetNamespace(), headline(r))
	if r.Paused {
		p.say("%s", strings.TrimSpace("It is paused: Governor takes no step until it is resumed. "+r.PausedBy))
	}
	for _, kept := range r.Kept {
		p.say("Not rolled back: %s.", kept)
	}
	number := 0
	for _, s := range r.Steps {
		if !s.IsWait {
			number++
		}
		p.step(number, s)
	}
	if r.Omitted > 0 {
		p.say("      and %d more, which are not shown", r.Omitted)
	}
	for _, c := range r.Resources {
		p.resource(c)
	}
	p.say("Then: %s", ending(r))
	for _, unseen := range r.Unknowns {
		p.say("Not known: %s", unseen)
	}
}

func headline(r preview.Report) string {
	actions := len(r.Actions()) + r.Omitted
	switch {
	case !r.Changes() && r.Settles():
		return "nothing to do"
	case actions == 0 && len(r.Resources) > 0:
		return "no steps, only resources change"
	case actions == 1:
		return "1 step" + harm(r)
	}
	return fmt.Sprintf("%d steps", actions) + harm(r)
}

// harm counts the steps that are not routine.
func harm(r preview.Report) string {
	count := map[lifecycle.Class]int{}
	for _, s := range r.Actions() {
		count[s.Class]++
	}
	var words []string
	for _, class := range []lifecycle.Class{lifecycle.ClassIrreversible, lifecycle.ClassDestructive, lifecycle.ClassDisruptive} {
		if count[class] > 0 {
			words = append(words, fmt.Sprintf("%d %s", count[class], strings.ToLower(string(class))))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return ", of which " + strings.Join(words, " and ")
}

func (p *plan) step(number int, s preview.Step) {
	if s.IsWait {
		p.say("      … until %s%s", s.Step, usually(s.Expected.Duration))
		return
	}
	class := string(s.Class)
	if class == "" {
		class = string(lifecycle.ClassRoutine)
	}
	p.say("%4d. %s (%s)%s", number, s.Step, class, usually(s.Expected.Duration))
	p.say("      %s", because(s.Step))
	if s.Impact != "" {
		p.say("      impact: %s", s.Impact)
	}
	for _, gate := range s.Held {
		p.say("      HELD by %s: %s", holder(gate), gate.Message)
	}
}

func holder(r lifecycle.Refusal) string {
	if r.Policy != "" {
		return r.By()
	}
	return r.Gate
}

func because(s lifecycle.Step) string {
	if s.Message == "" || strings.HasPrefix(s.Message, s.Reason) {
		return s.Reason + strings.TrimPrefix(s.Message, s.Reason)
	}
	return s.Reason + ": " + s.Message
}

func usually(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return ", usually " + brief(d)
}

// brief rounds a duration for users.
func brief(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 10*time.Minute:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// marks are the markers of changed resources, as in a diff.
var marks = map[string]string{"Created": "+ create", "Configured": "~ change", "Pruned": "- delete"}

func (p *plan) resource(c preview.Resource) {
	p.say("    %s %s %s", marks[c.Verb], c.Kind, c.Name)
	const most = 8
	for _, f := range c.Fields[:min(len(c.Fields), most)] {
		p.say("        %s%s", f.Path, difference(f))
	}
	if more := len(c.Fields) - most; more > 0 {
		p.say("        and %d more fields", more)
	}
}

func difference(f preview.Field) string {
	if f.From == "" && f.To == "" {
		return ""
	}
	return fmt.Sprintf(": %s → %s", shown(f.From), shown(f.To))
}

func shown(value string) string {
	const most = 60
	switch runes := []rune(value); {
	case value == "":
		return "(none)"
	case len(runes) > most:
		return string(runes[:most]) + "…"
	}
	return value
}

func ending(r preview.Report) string {
	held := slices.ContainsFunc(r.Steps, func(s preview.Step) bool { return len(s.Held) > 0 })
	switch {
	case r.Settles():
		return r.Message
	case held:
		return "it waits until the gate opens."
	}
	return fmt.Sprintf("it stops, %s: %s", r.Reason, r.Message)
}
