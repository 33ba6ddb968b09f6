package preview

import (
	"fmt"
	"strings"

	"github.com/governor-dev/governor/lifecycle"
)

// Summary returns the plan in one sentence of at most 256 characters, the limit of an
// admission warning; empty if there is nothing to do.
func (p Plan) Summary() string {
	actions := p.Actions()
	if len(actions) == 0 && (p.Settles() || p.Outcome == lifecycle.OutcomeWait) {
		return ""
	}
	const limit = 256
	said := p.opening(actions)
	ending := p.ending(actions)
	if room := limit - len(said); len(ending) > room {
		ending = ending[:max(0, room-3)] + "…"
	}
	return said + ending
}

// opening names as many steps as fit in half of the sentence.
func (p Plan) opening(actions []Step) string {
	if len(actions) == 0 {
		return "Governor will do nothing"
	}
	said := fmt.Sprintf("Governor will take %s: %s", count(len(actions), "step"), actions[0])
	for i, s := range actions[1:] {
		if len(said) > 110 {
			return said + fmt.Sprintf(" and %d more", len(actions)-i-1)
		}
		said += ", " + s.String()
	}
	return said
}

// ending counts the steps that are not routine, and describes the end if the plan does not
// settle.
func (p Plan) ending(actions []Step) string {
	harm := map[lifecycle.Class]int{}
	for _, s := range actions {
		harm[s.Class]++
	}
	var notes []string
	for _, class := range []lifecycle.Class{lifecycle.ClassIrreversible, lifecycle.ClassDestructive, lifecycle.ClassDisruptive} {
		if n := harm[class]; n > 0 {
			notes = append(notes, fmt.Sprintf("%d %s", n, strings.ToLower(string(class))))
		}
	}
	said := ""
	if len(notes) > 0 {
		said = " (" + strings.Join(notes, ", ") + ")"
	}
	if !p.Settles() {
		return said + "; then it stops: " + p.Message
	}
	return said + "."
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
