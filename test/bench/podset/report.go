package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// goal is the maximum ratio of a PodSet's time to a ReplicaSet's.
const goal = 1.2

// results are the results that are written.
type results struct {
	Date        string      `json:"date"`
	Size        int         `json:"size"`
	ReplicaSets []durations `json:"replicaSets"`
	PodSets     []durations `json:"podSets"`
	Rest        idleCost    `json:"rest"`
}

// idleCost is the cost of the operator when a set of that size does not change.
type idleCost struct {
	Seconds  float64 `json:"seconds"`
	Requests float64 `json:"requests"`
	CPU      float64 `json:"cpuSeconds"`
	// Grow is the number of requests to scale from 1 pod to the size.
	Grow    float64 `json:"requestsToGrow"`
	GrowCPU float64 `json:"cpuSecondsToGrow"`
}

func (r *results) add(c podKeeper, l durations) {
	if c.kind() == "PodSet" {
		r.PodSets = append(r.PodSets, l)
		return
	}
	r.ReplicaSets = append(r.ReplicaSets, l)
}

// idle scales a set once more and then leaves it idle.
func (s *testEnv) idle(ctx context.Context, o options) (c idleCost, err error) {
	if err := s.createSet(ctx, podSet{}); err != nil {
		return c, err
	}
	first, err := s.read(ctx)
	if err != nil {
		return c, err
	}
	if _, _, err = s.scale(ctx, podSet{}, o.size); err != nil {
		return c, err
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return c, err
	}
	before, err := s.read(ctx)
	if err != nil {
		return c, err
	}
	if err := pause(ctx, o.rest); err != nil {
		return c, err
	}
	after, err := s.read(ctx)
	return idleCost{
		Seconds: o.rest.Seconds(), Requests: after.requests - before.requests, CPU: after.cpu - before.cpu,
		Grow: before.requests - first.requests, GrowCPU: before.cpu - first.cpu,
	}, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// reading is the resource usage that the operator reports.
type reading struct{ requests, cpu float64 }

func (s *testEnv) read(ctx context.Context) (r reading, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.metrics, nil)
	if err != nil {
		return r, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.ParseFloat(value, 64)
		switch {
		case strings.HasPrefix(name, "rest_client_requests_total"):
			r.requests += n
		case name == "process_cpu_seconds_total":
			r.cpu = n
		}
	}
	return r, err
}

// table prints the ratio of consecutive measurements in each round: the machine may be
// faster in one minute than in another.
func (r *results) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "median of %d rounds, s\tReplicaSet\tPodSet\tratio\tgoal\t\n", len(r.PodSets))
	for _, row := range []struct {
		name string
		of   func(durations) float64
	}{
		{fmt.Sprintf("1 → %d: all pods exist", r.Size), func(l durations) float64 { return l.Made }},
		{fmt.Sprintf("1 → %d: status shows all available", r.Size), func(l durations) float64 { return l.Ready }},
		{fmt.Sprintf("%d → 1: the other pods are gone", r.Size), func(l durations) float64 { return l.Gone }},
		{fmt.Sprintf("%d → 1: status shows 1", r.Size), func(l durations) float64 { return l.Told }},
		{fmt.Sprintf("1 → %d: CPU time", r.Size), func(l durations) float64 { return l.GrowWork }},
		{fmt.Sprintf("%d → 1: CPU time", r.Size), func(l durations) float64 { return l.ShrinkWork }},
	} {
		theirs, ours := each(r.ReplicaSets, row.of), each(r.PodSets, row.of)
		ratios := make([]float64, len(ours))
		for i := range ours {
			ratios[i] = ours[i] / theirs[i]
		}
		ratio, mark := median(ratios), ""
		if ratio > goal {
			mark = " ✗"
		}
		_, _ = fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f%s\t≤ %.1f\t\n", row.name, median(theirs), median(ours), ratio, mark, goal)
	}
	_ = t.Flush()
	_, _ = fmt.Fprintf(w, "operator: %.0f requests and %.2f s of a core to grow; at rest with %d pods, %.0f s: %.0f requests, %.2f %% of a core\n",
		r.Rest.Grow, r.Rest.GrowCPU, r.Size, r.Rest.Seconds, r.Rest.Requests, 100*r.Rest.CPU/r.Rest.Seconds)
}

func (r *results) save(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o600)
}

func each(all []durations, of func(durations) float64) []float64 {
	values := make([]float64, 0, len(all))
	for _, l := range all {
		values = append(values, of(l))
	}
	return values
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
