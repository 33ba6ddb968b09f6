package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/governor-dev/governor/lifecycle/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

// chaosPlan is a dry run, as -o writes it.
type chaosPlan struct {
	Seed    uint64               `json:"seed"`
	Acts    []experiment.Act     `json:"acts"`
	LeftOut []experiment.LeftOut `json:"leftOut,omitempty"`
	// Waits are the instances that are not ready for a manipulation now, and why.
	Waits map[string]string `json:"waits,omitempty"`
}

func (m *monkey) plan(ctx context.Context, e *experiment.Experiment) error {
	p := chaosPlan{Seed: e.Seed, Waits: map[string]string{}}
	for _, instance := range e.Instances {
		state, err := instance.Look(ctx)
		if err != nil {
			return err
		}
		if why := state.Unfit(); why != "" {
			p.Waits[instance.String()] = why
		}
	}
	var err error
	if p.Acts, p.LeftOut, err = e.Plan(ctx); err != nil {
		return err
	}
	return m.write(m.session, p, func() { m.printPlan(p) })
}

func (m *monkey) printPlan(p chaosPlan) {
	rows := [][]cell{cells("#", "INSTANCE", "MANIPULATION", "OBJECT", "WHAT")}
	for _, a := range p.Acts {
		rows = append(rows, cells(fmt.Sprint(a.Number), a.Instance, a.Manipulation, strings.Join(a.Objects, ","), a.Sentence))
	}
	m.sayAll(m.table(rows))
	for _, instance := range slices.Sorted(maps.Keys(p.Waits)) {
		m.say("Now nothing would begin for %s: %s", instance, p.Waits[instance])
	}
	m.printLeftOut(p.LeftOut)
	m.say("Nothing was done. Each manipulation would begin when the instance has healed from the one before. Seed %d.", p.Seed)
}

func (m *monkey) printLeftOut(all []experiment.LeftOut) {
	for _, l := range all {
		m.say("Left out for %s: %s, because %s.", l.Instance, l.Manipulation, strings.TrimSuffix(l.Reason, "."))
	}
}

// print writes the report for people.
func (m *monkey) print(r experiment.Report) {
	rows := [][]cell{cells("#", "TIME", "INSTANCE", "MANIPULATION", "OBJECT", "RESULT", "HEALED", "LEAST READY", "NOT READY")}
	for _, a := range r.Acts {
		row := cells(fmt.Sprint(a.Number), a.At.UTC().Format(time.TimeOnly), a.Instance, a.Manipulation, strings.Join(a.Objects, ","),
			string(a.Outcome), healed(a), fmt.Sprintf("%d of %d", a.LeastReady, a.Pods), experiment.Rounded(a.NotReadyFor.Duration))
		row[5].tone = good
		if a.Outcome != experiment.Healed {
			row[5].tone = bad
		}
		rows = append(rows, row)
	}
	if len(r.Acts) > 0 {
		m.sayAll(m.table(rows))
	}
	for _, a := range r.Acts {
		m.printSeen(a)
	}
	m.printLeftOut(r.LeftOut)
	for _, what := range r.NotMeasured {
		m.say("Not measured: %s", what)
	}
	m.say("%s Seed %d.", r.Summary(), r.Seed)
}

// printSeen writes what was observed during an act.
func (m *monkey) printSeen(a experiment.Act) {
	if len(a.Seen)+len(a.Steps) == 0 && a.Message == "" {
		return
	}
	m.say("%d. %s of %s", a.Number, a.Manipulation, strings.Join(a.Objects, ", "))
	for _, s := range a.Seen {
		m.say("   +%s  %s", experiment.Rounded(s.After.Duration), s.What)
	}
	for _, step := range a.Steps {
		m.say("   step %s", step)
	}
	if a.Message != "" {
		m.say("   %s: %s", a.Outcome, a.Message)
	}
}

func healed(a experiment.Act) string {
	if a.Outcome != experiment.Healed {
		return "-"
	}
	return experiment.Rounded(a.HealedAfter.Duration)
}

// manipulation is one that may be done, as -o writes it.
type manipulation struct {
	Name     string `json:"name"`
	Sentence string `json:"sentence"`
	Lasts    bool   `json:"lasts,omitempty"`
}

func listed(all chaos.Catalogue) []manipulation {
	out := make([]manipulation, len(all))
	for i, m := range all {
		out[i] = manipulation{Name: m.Name, Sentence: m.Sentence, Lasts: m.Lasts}
	}
	return out
}

func (m *monkey) printList(all chaos.Catalogue) {
	rows := [][]cell{cells("MANIPULATION", "WHAT")}
	for _, one := range all {
		rows = append(rows, cells(one.Name, one.Sentence))
	}
	m.sayAll(m.table(rows))
}
