package consistencyclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Find returns the addresses (host:port) of the members that clients may use now.
// It is asked before each new connection.
type Find func(context.Context) ([]string, error)

// Options of a witness.
type Options struct {
	// Find the members.
	Find Find
	// TLS is nil where clients do not encrypt. Its ServerName must be one that all
	// members' certificates have.
	TLS *tls.Config
	// Pace is the time from one write to the next of each connection; 20 ms if zero.
	Pace time.Duration
	// Connections that write, 4 if zero.
	Connections int
	// Patience is after how long an unanswered write counts as failed, and its
	// connection as broken; a second if zero.
	Patience time.Duration
	// Prefix of the keys, "witness/" if empty.
	Prefix string
}

func (o Options) filled() Options {
	if o.Pace == 0 {
		o.Pace = 20 * time.Millisecond
	}
	if o.Connections == 0 {
		o.Connections = 4
	}
	if o.Patience == 0 {
		o.Patience = time.Second
	}
	if o.Prefix == "" {
		o.Prefix = "witness/"
	}
	return o
}

// Witness writes until it is stopped. Its methods may be called meanwhile.
type Witness struct {
	options Options
	cancel  context.CancelFunc
	writers sync.WaitGroup
	began   time.Time

	mu       sync.Mutex
	ended    time.Time // zero while it writes
	next     int
	acked    []ack // in the order of their times
	failed   int
	failure  error
	clusters map[uint64]bool
}

// ack is one acknowledged write.
type ack struct {
	key      string
	revision int64
	at       time.Time
}

// Start begins to write.
func Start(ctx context.Context, o Options) *Witness {
	ctx, cancel := context.WithCancel(ctx)
	w := &Witness{options: o.filled(), cancel: cancel, began: time.Now(), clusters: map[uint64]bool{}}
	for i := range w.options.Connections {
		w.writers.Go(func() { w.write(ctx, i) })
	}
	return w
}

// Stop ends the writing; a second time it does nothing.
func (w *Witness) Stop() {
	w.cancel()
	w.writers.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended.IsZero() {
		w.ended = time.Now()
	}
}

// Tally is what a witness has seen so far.
type Tally struct {
	// Acknowledged writes, and those of which nobody knows what became of them.
	Acknowledged, Failed int
	// LastFailure is in etcd's words; nil if none has failed.
	LastFailure error
	// Silence is for how long no write has been acknowledged up to now, or up to
	// the end; LongestGap the longest such time.
	Silence, LongestGap time.Duration
	// Clusters are the IDs that acknowledgements came from: one, or data was lost.
	Clusters []uint64
}

// Tally may be asked at any time.
func (w *Witness) Tally() Tally {
	gap := w.LongestGap(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := Tally{Acknowledged: len(w.acked), Failed: w.failed, LastFailure: w.failure, LongestGap: gap, Silence: w.now().Sub(w.last())}
	for id := range w.clusters {
		t.Clusters = append(t.Clusters, id)
	}
	slices.Sort(t.Clusters)
	return t
}

// LongestGap is the longest time without an acknowledgement since then; a gap that
// began earlier counts from then on.
func (w *Witness) LongestGap(since time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, _ := slices.BinarySearchFunc(w.acked, since, func(a ack, t time.Time) int { return a.at.Compare(t) })
	var longest time.Duration
	before := since
	for _, a := range w.acked[from:] {
		longest, before = max(longest, a.at.Sub(before)), a.at
	}
	return max(longest, w.now().Sub(before))
}

// String is the tally in one line.
func (t Tally) String() string {
	said := fmt.Sprintf("%d writes acknowledged, %d unknown, longest gap %s", t.Acknowledged, t.Failed, t.LongestGap.Round(time.Millisecond))
	if t.LastFailure != nil {
		said += fmt.Sprintf(" (last: %v)", t.LastFailure)
	}
	return said
}

// now is the end, once that has come.
func (w *Witness) now() time.Time {
	if w.ended.IsZero() {
		return time.Now()
	}
	return w.ended
}

func (w *Witness) last() time.Time {
	if len(w.acked) == 0 {
		return w.began
	}
	return w.acked[len(w.acked)-1].at
}
