package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// The goals.
const (
	maxRatio      = 1.5
	maxCPUPercent = 0.5
	maxRSS        = 100 << 20
)

// results are the results of one run.
type results struct {
	CPUs        int             `json:"cpus"`
	Go          string          `json:"go"`
	RestSeconds float64         `json:"restSeconds"`
	Reconciles  []reconcileCost `json:"turns,omitempty"`
	Fleets      []fleet         `json:"fleets"`

	// RSSPerObject is the memory of one more object, from the smallest fleet of at least
	// 100 objects to the largest.
	RSSPerObject float64  `json:"rssBytesPerObject,omitempty"`
	Missed       []string `json:"goalsMissed"`
}

// conclude computes the results that need more than one fleet.
func (r *results) conclude() {
	r.Missed = []string{}
	first := slices.IndexFunc(r.Fleets, func(f fleet) bool { return f.Objects >= 100 })
	if last := len(r.Fleets) - 1; first >= 0 && r.Fleets[last].Objects > r.Fleets[first].Objects {
		small, large := r.Fleets[first], r.Fleets[last]
		r.RSSPerObject = float64(large.Idle.RSS-small.Idle.RSS) / float64(large.Objects-small.Objects)
	}
	for _, row := range rows() {
		for _, f := range r.Fleets {
			if row.missed != nil && row.missed(f) {
				r.Missed = append(r.Missed, fmt.Sprintf("%d objects: %s, goal %s", f.Objects, row.name, row.goal))
			}
		}
	}
}

func (r *results) save(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o600)
}

// row is one line of the table of fleets.
type row struct {
	name   string
	goal   string
	value  func(fleet) string
	missed func(fleet) bool
}

func rows() []row {
	return slices.Concat(createRows(), restRows(), changeRows())
}

func createRows() []row {
	return []row{
		{name: "CREATE: operator, s", value: func(f fleet) string { return seconds(f.Create.Span.Seconds) }},
		{name: fmt.Sprintf("plain calls, %d at a time, s", workers), value: func(f fleet) string { return seconds(f.Parallel.creation().Seconds) }},
		{name: "plain calls, one by one, s", value: func(f fleet) string { return seconds(f.Sequential.creation().Seconds) }},
		{
			name: fmt.Sprintf("operator / plain, %d at a time", workers), goal: fmt.Sprintf("≤ %.1f", maxRatio),
			value:  func(f fleet) string { return ratio(f.CreateRatio) },
			missed: func(f fleet) bool { return f.CreateRatio > maxRatio },
		},
		{
			name: "operator / plain, one by one", goal: fmt.Sprintf("≤ %.1f", maxRatio),
			value:  func(f fleet) string { return ratio(f.CreateRatioSequential) },
			missed: func(f fleet) bool { return f.CreateRatioSequential > maxRatio },
		},
		{name: "the same of all rounds", value: func(f fleet) string { return ratios(f.Rounds) }},
		{name: fmt.Sprintf("operator / plain, %d, children only", workers), value: func(f fleet) string { return ratio(f.CreateRatioChildren) }},
		{name: "all work / all work of plain", value: func(f fleet) string { return ratio(f.CreateWorkRatio) }},
		{name: "reconciles per object", value: func(f fleet) string { return ratio(f.Create.ReconcilesPerObject) }},
		{name: "requests per object", value: func(f fleet) string { return ratio(f.Create.RequestsPerObject) }},
		{name: "operator's CPU, s", value: func(f fleet) string { return seconds(f.Create.CPUSeconds) }},
		{name: "cores used by other processes: operator", value: func(f fleet) string { return ratio(f.Create.Span.OthersCores) }},
		{name: "cores used by other processes: plain", value: func(f fleet) string { return ratio(f.Parallel.creation().OthersCores) }},
	}
}

func restRows() []row {
	return []row{
		{
			name: "IDLE: writes", goal: "0",
			value:  func(f fleet) string { return fmt.Sprint(f.Idle.Writes) },
			missed: func(f fleet) bool { return f.Idle.Writes > 0 },
		},
		{name: "reads", value: func(f fleet) string { return fmt.Sprint(f.Idle.Requests.total() - f.Idle.Writes) }},
		{
			name: "operator's CPU, % of a core", goal: fmt.Sprintf("≤ %.1f", maxCPUPercent),
			value:  func(f fleet) string { return ratio(f.Idle.CPUPercent) },
			missed: func(f fleet) bool { return f.Idle.CPUPercent > maxCPUPercent },
		},
		{
			name: "operator's RSS, MiB", goal: fmt.Sprintf("≤ %d", maxRSS>>20),
			value:  func(f fleet) string { return fmt.Sprintf("%.1f", float64(f.Idle.RSS)/(1<<20)) },
			missed: func(f fleet) bool { return f.Idle.RSS > maxRSS },
		},
	}
}

func changeRows() []row {
	return []row{
		{name: "CHANGE: operator, s", value: func(f fleet) string { return seconds(f.Change.Span.Seconds) }},
		{name: fmt.Sprintf("operator / plain, %d at a time", workers), value: func(f fleet) string { return ratio(f.ChangeRatio) }},
		{name: "all work / all work of plain", value: func(f fleet) string { return ratio(f.ChangeWorkRatio) }},
		{name: "reconciles per object", value: func(f fleet) string { return ratio(f.Change.ReconcilesPerObject) }},
		{name: "requests per object", value: func(f fleet) string { return ratio(f.Change.RequestsPerObject) }},
		{name: "operator's CPU, s", value: func(f fleet) string { return seconds(f.Change.CPUSeconds) }},
	}
}

func seconds(s float64) string { return fmt.Sprintf("%.2f", s) }

func ratio(r float64) string { return fmt.Sprintf("%.2f", r) }

func ratios(all []float64) string {
	var words []string
	for _, r := range all {
		words = append(words, ratio(r))
	}
	return strings.Join(words, ", ")
}

// table prints everything. It marks a cell with a missed goal.
func (r *results) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer func() { _ = t.Flush() }()
	r.reconcileTable(t)
	head := []string{"objects"}
	for _, f := range r.Fleets {
		head = append(head, fmt.Sprint(f.Objects))
	}
	line(t, append(head, "goal")...)
	for _, row := range rows() {
		line(t, append(r.cells(row), row.goal)...)
	}
	if r.RSSPerObject != 0 {
		_, _ = fmt.Fprintf(t, "\nmemory per further object: %.1f KiB\n", r.RSSPerObject/(1<<10))
	}
	r.breakdown(t)
	for _, m := range r.Missed {
		_, _ = fmt.Fprintf(t, "missed: %s\n", m)
	}
}

func line(w io.Writer, cells ...string) {
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
}

func (r *results) cells(row row) []string {
	cells := []string{row.name}
	for _, f := range r.Fleets {
		cell := row.value(f)
		if row.missed != nil && row.missed(f) {
			cell = "✗ " + cell
		}
		cells = append(cells, cell)
	}
	return cells
}

func (r *results) reconcileTable(w io.Writer) {
	if len(r.Reconciles) == 0 {
		return
	}
	line(w, "one reconcile", "µs", "reconciles/s", "allocs", "KiB", "ratio to a plain request")
	for _, t := range r.Reconciles {
		line(w, t.Name, fmt.Sprintf("%.1f", float64(t.Nanos)/1e3), fmt.Sprintf("%.0f", t.PerSecond), fmt.Sprint(t.Allocs),
			fmt.Sprintf("%.1f", float64(t.Bytes)/(1<<10)), fmt.Sprintf("%.2f × %s", t.Ratio, t.Beside))
	}
	_, _ = fmt.Fprintln(w)
}

// breakdown prints the requests of the largest fleet.
func (r *results) breakdown(w io.Writer) {
	f := r.Fleets[len(r.Fleets)-1]
	_, _ = fmt.Fprintf(w, "requests per object to create: %s\n", f.Create.Requests.each(f.Objects))
	_, _ = fmt.Fprintf(w, "requests per object to change: %s\n", f.Change.Requests.each(f.Objects))
}

// each returns "3.00 create events, 1.00 patch deployments", the most frequent first.
func (r requests) each(n int) string {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if r[a] != r[b] {
			return r[b] - r[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%.2f %s", float64(r[name])/float64(n), name)
	}
	return strings.Join(names, ", ")
}
