package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// tally is the result of all rounds.
type tally struct {
	mu     sync.Mutex
	rounds []round
	errs   []error
}

func (t *tally) add(r round) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.err != nil {
		t.errs = append(t.errs, fmt.Errorf("seed %d: %w", r.seed, r.err))
		return
	}
	t.rounds = append(t.rounds, r)
}

// disorder is the error of a cluster that did not recover itself.
func (t *tally) disorder(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.errs = append(t.errs, err)
	}
}

func (t *tally) failures() []round {
	return slices.DeleteFunc(slices.Clone(t.rounds), func(r round) bool { return !r.failed() })
}

// row is one row of the report: the manipulations of objects of one kind.
type row struct {
	kind                   string
	done, refused, nothing int
	healed                 []time.Duration
	names                  map[string]bool
}

func (t *tally) rows() []*row {
	byKind := map[string]*row{}
	for _, r := range t.rounds {
		for _, m := range r.made {
			of, ok := byKind[m.what.Object.Kind]
			if !ok {
				of = &row{kind: m.what.Object.Kind, names: map[string]bool{}}
				byKind[of.kind] = of
			}
			of.note(m, r)
		}
	}
	all := make([]*row, 0, len(byKind))
	for _, r := range byKind {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *row) int { return cmp.Compare(a.kind, b.kind) })
	return all
}

func (w *row) note(m made, r round) {
	switch m.outcome {
	case moveDone:
		w.done++
		w.names[m.what.Name] = true
		if r.healed > 0 {
			w.healed = append(w.healed, r.healed)
		}
	case moveRefused:
		w.refused++
	default:
		w.nothing++
	}
}

// report writes the table and the summary.
func (t *tally) report(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nobject\tdone\trefused\tnothing to do\tmanipulations\thealed, median\tworst")
	total := &row{kind: "all", names: map[string]bool{}}
	for _, r := range t.rows() {
		r.print(w)
		total.done, total.refused, total.nothing = total.done+r.done, total.refused+r.refused, total.nothing+r.nothing
		for name := range r.names {
			total.names[name] = true
		}
	}
	for _, r := range t.rounds {
		if r.healed > 0 {
			total.healed = append(total.healed, r.healed)
		}
	}
	total.print(w)
	w.Flush()
	fmt.Fprintf(out, "\n%d rounds, %d violated, %d could not be carried out; %d writes acknowledged\n", len(t.rounds), len(t.failures()), len(t.errs), t.writes())
	t.slowest(out)
}

func (w *row) print(out io.Writer) {
	slices.Sort(w.healed)
	median, worst := "-", "-"
	if n := len(w.healed); n > 0 {
		median, worst = fmt.Sprintf("%.1fs", w.healed[n/2].Seconds()), fmt.Sprintf("%.1fs", w.healed[n-1].Seconds())
	}
	fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", w.kind, w.done, w.refused, w.nothing, len(w.names), median, worst)
}

func (t *tally) writes() (n int) {
	for _, r := range t.rounds {
		n += r.writes
	}
	return n
}

// slowest names the rounds with the longest recovery.
func (t *tally) slowest(out io.Writer) {
	all := slices.Clone(t.rounds)
	slices.SortFunc(all, func(a, b round) int { return cmp.Compare(b.healed, a.healed) })
	for _, r := range all[:min(3, len(all))] {
		fmt.Fprintf(out, "slowest: %.1fs, longest gap %.1fs: %s\n", r.healed.Seconds(), r.gap.Seconds(), r.plan)
	}
}
