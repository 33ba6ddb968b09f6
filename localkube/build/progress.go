package build

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// state is how far a target is.
type state string

const (
	waiting     state = "waiting"
	locked      state = "waiting for another localkube"
	downloading state = "downloading"
	downloaded  state = "downloaded"
	compiling   state = "compiling"
	done        state = "done"
	failed      state = "failed"
	stopped     state = "stopped"
)

func (s state) working() bool { return s == downloading || s == compiling }
func (s state) over() bool    { return s == done || s == failed || s == stopped }

// progress shows how far every target is: as a table that is drawn again and
// again on a terminal, as a line per change elsewhere.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	live  bool
	now   func() time.Time
	began time.Time
	rows  []row
	drawn int // lines on the screen
	quit  chan struct{}
	ended chan struct{}
}

type row struct {
	title  string
	state  state
	since  time.Time     // of the state
	worked time.Duration // in the working states before this one
	detail string
	bin    string
}

func newProgress(out io.Writer, plans []plan) *progress {
	p := &progress{out: out, now: time.Now, began: time.Now(), quit: make(chan struct{}), ended: make(chan struct{})}
	if p.out == nil {
		p.out = io.Discard
	}
	if f, ok := out.(*os.File); ok {
		p.live = term.IsTerminal(int(f.Fd()))
	}
	for _, plan := range plans {
		p.rows = append(p.rows, row{title: plan.title(), state: waiting, since: p.began, bin: plan.bin})
	}
	go p.animate()
	return p
}

func (p *progress) animate() {
	defer close(p.ended)
	if !p.live {
		return
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		p.draw()
		select {
		case <-p.quit:
			p.draw()
			return
		case <-tick.C:
		}
	}
}

// close draws the last state.
func (p *progress) close() {
	close(p.quit)
	<-p.ended
}

func (p *progress) set(i int, s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows[i].enter(s, p.now())
	if !p.live && s != downloaded {
		fmt.Fprintln(p.out, p.rows[i].line(p.now()))
	}
}

func (p *progress) count(i, n int, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows[i].detail = fmt.Sprintf("%d %s", n, what)
}

func (r *row) enter(s state, now time.Time) {
	if r.state.working() {
		r.worked += now.Sub(r.since)
	}
	r.state, r.since, r.detail = s, now, ""
	if s == done {
		r.detail = size(r.bin)
	}
}

// draw draws the table over the one before.
func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	width := 80
	if f, ok := p.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			width = w
		}
	}
	up := ""
	if p.drawn > 0 {
		up = fmt.Sprintf("\x1b[%dA", p.drawn)
	}
	lines := p.table(width)
	p.drawn = len(lines)
	fmt.Fprint(p.out, up+"\r\x1b[J"+strings.Join(lines, "\n")+"\n")
}

// table is what a terminal shows.
func (p *progress) table(width int) []string {
	now, over := p.now(), 0
	var lines []string
	for _, r := range p.rows {
		lines = append(lines, fit(r.line(now), width))
		if r.state.over() {
			over++
		}
	}
	total := fmt.Sprintf("%d of %d built, %s", over, len(p.rows), clock(now.Sub(p.began)))
	return append(lines, fit(total, width))
}

func (r row) line(now time.Time) string {
	text := fmt.Sprintf("%-20s %s", r.title, r.state)
	spent := r.worked
	if r.state.working() {
		spent = now.Sub(r.since)
	}
	if spent >= time.Second {
		text = fmt.Sprintf("%-20s %-12s %s", r.title, r.state, clock(spent))
	}
	if r.detail != "" {
		text += "  " + r.detail
	}
	return text
}

// fit keeps a line from wrapping, which would spoil the drawing over it.
func fit(line string, width int) string {
	if r := []rune(line); len(r) >= width {
		return string(r[:width-1])
	}
	return line
}

func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// size tells what a folder of programs holds.
func size(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	var total int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
	}
	if len(entries) == 1 {
		return fmt.Sprintf("1 program, %d MB", (total+1e6-1)/1e6)
	}
	return fmt.Sprintf("%d programs, %d MB", len(entries), (total+1e6-1)/1e6)
}
