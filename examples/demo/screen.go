package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/governor-dev/governor/apps/etcd"
)

// screen draws a view in place on a terminal, and prints only what is new elsewhere.
type screen interface {
	// begin starts a scene; what the view tells already is not told again.
	begin(before view)
	show(v view, since time.Duration)
	tick() <-chan time.Time
}

func newScreen(out *os.File) screen {
	if term.IsTerminal(int(out.Fd())) {
		return &terminal{out: out}
	}
	return &lines{out: out, told: map[string]bool{}}
}

// A terminal that is narrower than narrowest reports no true width; usual is assumed then.
const (
	narrowest = 20
	usual     = 100
)

// terminal redraws a table.
type terminal struct {
	out   *os.File
	drawn int
	known map[string]bool
}

func (t *terminal) begin(before view) {
	t.drawn, t.known = 0, map[string]bool{}
	for _, e := range before.events {
		t.known[occasion(e)] = true
	}
}

func (t *terminal) tick() <-chan time.Time { return time.After(time.Second) }

func (t *terminal) show(v view, since time.Duration) {
	width, _, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width < narrowest {
		width = usual // script, docker exec -t and some CI report none
	}
	var out strings.Builder
	for range t.drawn {
		out.WriteString("\x1b[1A\x1b[2K")
	}
	t.drawn = 0
	for line := range strings.Lines(table(v, since, t.known)) {
		runes := []rune(strings.TrimRight(line, "\n"))
		out.WriteString(string(runes[:min(len(runes), width-1)]) + "\n")
		t.drawn++
	}
	fmt.Fprint(t.out, out.String())
}

// table is the object, its pods, and why things happen.
func table(v view, since time.Duration, known map[string]bool) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  %4.0f s\tREADY\tNODE\tSTATE\n", since.Seconds())
	fmt.Fprintf(w, "  etcdcluster/%s\t%s\t\t%s\n", name, v.object.Status.Ready, story(v))
	for _, p := range v.pods {
		fmt.Fprintf(w, "    pod/%s\t%s\t%s\t%s\n", p.Name, mark(podReady(p)), p.Spec.NodeName, podState(v, p))
	}
	_ = w.Flush()
	if v.written != nil {
		fmt.Fprintf(&out, "  writer: %s\n", v.written)
	}
	for _, e := range v.events {
		if !known[occasion(e)] {
			fmt.Fprintf(&out, "  why: %s\n", why(e))
		}
	}
	return out.String()
}

// occasion tells one event from another, and an event from its repetition.
func occasion(e eventsv1.Event) string { return fmt.Sprint(e.Name, when(e)) }

func why(e eventsv1.Event) string { return e.Reason + ": " + e.Note }

func mark(ready bool) string {
	if ready {
		return "yes"
	}
	return "no"
}

// podState is what a person would call the pod's state, and its member's place.
func podState(v view, p corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			return c.State.Waiting.Reason
		}
	}
	for _, m := range v.object.Status.Members {
		if m.Name == p.Labels[etcd.LabelMember] {
			return strings.Join([]string{string(p.Status.Phase), string(m.Role), m.Version}, " ")
		}
	}
	return string(p.Status.Phase)
}

// lines prints what has not been said yet.
type lines struct {
	out   io.Writer
	told  map[string]bool
	state string
}

func (l *lines) begin(view) { l.state = "" }

func (l *lines) tick() <-chan time.Time { return nil }

func (l *lines) show(v view, since time.Duration) {
	for _, e := range v.events {
		if key := occasion(e); !l.told[key] {
			l.told[key] = true
			l.say(since, "why: "+why(e))
		}
	}
	// Why it is so, the events have told.
	if state := v.object.Status.Ready + " ready"; state != l.state && v.object.Status.Ready != "" {
		l.state = state
		l.say(since, state)
	}
}

func (l *lines) say(since time.Duration, what string) {
	fmt.Fprintf(l.out, "  %5.1f s  %s\n", since.Seconds(), what)
}
