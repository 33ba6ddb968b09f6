package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// The goals.
const (
	maxRatio = 1.3
	// maxAfterStart is the maximum number of seconds beyond a pod start until etcd is healthy
	// again after the loss of a disk. The time until the EtcdCluster is ready has no goal.
	// Whether a new member serves clients at once or seven seconds later is a race within
	// etcd.
	maxAfterStart = 5.0
	// maxWriteGap is the maximum number of seconds without writes after the sudden death of a
	// leader. A follower starts an election after etcd's election timeout, 1 s, plus a
	// random part of up to the same length (raft's randomizedElectionTimeout). A vote
	// takes milliseconds. So the first election that is not split ends within 2 s.
	maxWriteGap   = 2.0
	maxCPUPercent = 0.5
	maxRSS        = 60.0 // MiB, with goalFleet clusters
	goalFleet     = 20
	bytesInAMebi  = 1 << 20
	notApplicable = "-"
)

// results are the results of one run.
type results struct {
	Date      string     `json:"date"`
	CPUs      int        `json:"cpus"`
	Load      float64    `json:"loadAverageBefore"`
	Rounds    int        `json:"rounds"`
	Creations []creation `json:"creations"`
	Wounds    []recovery `json:"wounds"`
	Fleet     *fleet     `json:"fleet,omitempty"`
	Missed    []string   `json:"goalsMissed"`
}

// cell is one value, and whether it misses its goal.
type cell struct {
	text   string
	missed bool
}

func (c cell) String() string {
	if c.missed {
		return "✗ " + c.text
	}
	return c.text
}

// row is one line of a table. Its goal applies to all cells that can miss it.
type row struct {
	name  string
	cells []cell
	goal  string
}

// section is one table.
type section struct {
	head []string
	rows []row
}

func (r *results) sections() []section {
	var all []section
	if len(r.Creations) > 0 {
		all = append(all, r.creationTable())
	}
	if len(r.Wounds) > 0 {
		all = append(all, r.recoveryTable())
	}
	if r.Fleet != nil {
		all = append(all, r.Fleet.table())
	}
	return all
}

func (r *results) creationTable() section {
	head := []string{"CREATE: members"}
	for _, c := range r.Creations {
		head = append(head, fmt.Sprint(c.Size))
	}
	each := func(value func(creation) cell) (cells []cell) {
		for _, c := range r.Creations {
			cells = append(cells, value(c))
		}
		return cells
	}
	goal := fmt.Sprintf("≤ %.1f", maxRatio)
	return section{head, []row{
		{"plain StatefulSet, healthy after s", each(func(c creation) cell { return seconds(median(c.Plain, untilHealthy)) }), ""},
		{"Governor, healthy after s", each(func(c creation) cell { return seconds(median(c.Governor, untilHealthy)) }), ""},
		{"Governor with TLS, healthy after s", each(func(c creation) cell { return seconds(median(c.Encrypted, untilHealthy)) }), ""},
		{"Governor / plain, healthy", each(func(c creation) cell { return atMost(c.Ratio, maxRatio) }), goal},
		{"Governor / plain, ready", each(func(c creation) cell { return figure(c.RatioReady) }), ""},
		{"Governor with TLS / plain, healthy", each(func(c creation) cell { return figure(c.RatioEncrypted) }), ""},
	}}
}

func (r *results) recoveryTable() section {
	head := []string{"HEAL: lost"}
	for _, w := range r.Wounds {
		head = append(head, w.Fault.String())
	}
	each := func(value func(recovery) cell) (cells []cell) {
		for _, w := range r.Wounds {
			cells = append(cells, value(w))
		}
		return cells
	}
	healthy, ready := func(h sampleUnderWrites) float64 { return h.Healthy }, func(h sampleUnderWrites) float64 { return h.Ready }
	start, gap := func(h sampleUnderWrites) float64 { return h.PodStart }, func(h sampleUnderWrites) float64 { return h.Gap }
	beyond := fmt.Sprintf("≤ %.0f", maxAfterStart)
	return section{head, []row{
		{"plain StatefulSet, ready after s", each(func(w recovery) cell { return seconds(median(w.Plain, ready)) }), ""},
		{"Governor, healthy after s", each(func(w recovery) cell { return seconds(median(w.Governor, healthy)) }), ""},
		{"Governor, ready after s", each(func(w recovery) cell { return seconds(median(w.Governor, ready)) }), ""},
		{"Governor / plain, ready", each(func(w recovery) cell { return atMost(w.Ratio, maxRatio).unless(w.Fault.Disk) }), fmt.Sprintf("≤ %.1f", maxRatio)},
		{"start of the new pod, s", each(func(w recovery) cell { return seconds(median(w.Governor, start)) }), ""},
		{"healthy beyond that, s", each(func(w recovery) cell { return atMost(w.HealthyAfterStart, maxAfterStart).unless(!w.Fault.Disk) }), beyond},
		{"ready beyond that, s", each(func(w recovery) cell { return seconds(w.ReadyAfterStart).unless(!w.Fault.Disk) }), ""},
		{"recoveries that missed a publication", each(func(w recovery) cell { return cell{text: w.unpublished()}.unless(!w.Fault.Disk) }), ""},
		{"plain, longest write gap of all, s", each(func(w recovery) cell { return seconds(most(w.Plain, gap)) }), ""},
		{"Governor, longest write gap of all, s", each(func(w recovery) cell { return atMost(w.Gap, maxWriteGap) }), fmt.Sprintf("≤ %.0f", maxWriteGap)},
		{"acknowledged writes, all found again", each(func(w recovery) cell { return cell{text: fmt.Sprint(w.acknowledged())} }), ""},
	}}
}

// unpublished counts the recoveries with a new member that served clients only after seven
// seconds: it missed the response to its publication. All others are ready within a second
// of being healthy.
func (w recovery) unpublished() string {
	n := 0
	for _, h := range w.Governor {
		if h.Ready-h.Healthy > 3 {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(w.Governor))
}

func (w recovery) acknowledged() int {
	sum := 0
	for _, h := range slices.Concat(w.Plain, w.Governor) {
		sum += h.Acknowledged
	}
	return sum
}

func (f *fleet) table() section {
	clusters := float64(f.Clusters)
	rss := atMost(f.Rest.RSS/bytesInAMebi, maxRSS)
	rss.text = fmt.Sprintf("%.1f", f.Rest.RSS/bytesInAMebi)
	one := func(name string, c cell, goal string) row { return row{name, []cell{c}, goal} }
	return section{[]string{"FLEET: clusters of 3", fmt.Sprint(f.Clusters)}, []row{
		one("plain StatefulSets without TLS, all ready after s", seconds(f.PlainSeconds), ""),
		one("Governor with TLS, all ready after s", seconds(f.Seconds), ""),
		one("reads / writes per cluster", f.Create.each(f.Clusters), ""),
		one("operator's CPU per cluster, s", figure(f.Create.CPUSeconds/clusters), ""),
		one(fmt.Sprintf("AT REST, %.0f s: reads", f.Rest.Seconds), cell{text: fmt.Sprint(f.Rest.Reads)}, ""),
		one("writes, but for the lease", atMost(float64(f.Rest.Writes), 0).whole(), "0"),
		one("operator's CPU, % of a core", atMost(f.Rest.cpuPercent(), maxCPUPercent), fmt.Sprintf("≤ %.1f", maxCPUPercent)),
		one("operator's RSS, MiB", rss, fmt.Sprintf("≤ %.0f with %d clusters", maxRSS, goalFleet)),
		one(fmt.Sprintf("CHANGE, %d clusters 3→5→3: s", f.Changed), seconds(f.Change.Seconds), ""),
		one("reads / writes per cluster", f.Change.each(f.Changed), ""),
		one("operator's CPU per cluster, s", figure(f.Change.CPUSeconds/float64(f.Changed)), ""),
	}}
}

func (e effort) each(n int) cell {
	return cell{text: fmt.Sprintf("%.1f / %.1f", float64(e.Reads)/float64(n), float64(e.Writes)/float64(n))}
}

func figure(v float64) cell {
	if math.IsNaN(v) || v == 0 {
		return cell{text: notApplicable}
	}
	return cell{text: fmt.Sprintf("%.2f", v)}
}

func seconds(s float64) cell { return figure(s) }

func atMost(v, goal float64) cell {
	return cell{text: fmt.Sprintf("%.2f", v), missed: v > goal}
}

func (c cell) unless(not bool) cell {
	if not {
		return cell{text: notApplicable}
	}
	return c
}

func (c cell) whole() cell {
	c.text, _, _ = strings.Cut(c.text, ".")
	return c
}

// conclude lists the missed goals.
func (r *results) conclude() {
	r.Missed = []string{}
	for _, s := range r.sections() {
		for _, row := range s.rows {
			for i, c := range row.cells {
				if c.missed {
					r.Missed = append(r.Missed, fmt.Sprintf("%s, %s: %s, goal %s", s.head[0], s.head[i+1], row.name, row.goal))
				}
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

// table prints everything. It marks a cell with a missed goal.
func (r *results) table(w io.Writer) {
	for _, s := range r.sections() {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		line(t, append(slices.Clone(s.head), "goal")...)
		for _, row := range s.rows {
			cells := []string{row.name}
			for _, c := range row.cells {
				cells = append(cells, c.String())
			}
			line(t, append(cells, row.goal)...)
		}
		_ = t.Flush()
		_, _ = fmt.Fprintln(w)
	}
	for _, m := range r.Missed {
		_, _ = fmt.Fprintf(w, "missed: %s\n", m)
	}
}

func line(w io.Writer, cells ...string) {
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
}

// median returns NaN for no values.
func median[T any](all []T, of func(T) float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	values := make([]float64, 0, len(all))
	for _, one := range all {
		values = append(values, of(one))
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func most[T any](all []T, of func(T) float64) float64 {
	highest := 0.0
	for _, one := range all {
		highest = max(highest, of(one))
	}
	return highest
}
