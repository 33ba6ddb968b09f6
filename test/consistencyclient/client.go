package consistencyclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Find returns the addresses (host:port) of the members that clients may use now. It is
// called before each new connection.
type Find func(context.Context) ([]string, error)

// Options of a Witness.
type Options struct {
	// Find finds the members.
	Find Find
	// TLS is nil if clients do not use TLS. Every member's certificate must include its
	// ServerName.
	TLS *tls.Config
	// Interval is the interval between two writes of a connection; 20 ms if zero.
	Interval time.Duration
	// Connections is the number of connections that write; 4 if zero.
	Connections int
	// Timeout is the timeout of a write, after which its connection counts as broken; one
	// second if zero.
	Timeout time.Duration
	// Prefix is the prefix of the keys; "witness/" if empty.
	Prefix string
}

func (o Options) filled() Options {
	if o.Interval == 0 {
		o.Interval = 20 * time.Millisecond
	}
	if o.Connections == 0 {
		o.Connections = 4
	}
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	if o.Prefix == "" {
		o.Prefix = "witness/"
	}
	return o
}

// Client writes until it is stopped. Its methods may be called at any time.
type Client struct {
	options Options
	cancel  context.CancelFunc
	writers sync.WaitGroup
	began   time.Time

	mu       sync.Mutex
	ended    time.Time // zero while it writes
	next     int
	acked    []ack // sorted by time
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

// Start starts to write.
func Start(ctx context.Context, o Options) *Client {
	ctx, cancel := context.WithCancel(ctx)
	w := &Client{options: o.filled(), cancel: cancel, began: time.Now(), clusters: map[uint64]bool{}}
	for i := range w.options.Connections {
		w.writers.Go(func() { w.write(ctx, i) })
	}
	return w
}

// Stop ends the writes. Later calls do nothing.
func (w *Client) Stop() {
	w.cancel()
	w.writers.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended.IsZero() {
		w.ended = time.Now()
	}
}

// Stats summarizes the writes so far.
type Stats struct {
	// Acknowledged counts the acknowledged writes, Failed those with an unknown result.
	Acknowledged, Failed int
	// LastFailure is the last error; nil if no write has failed.
	LastFailure error
	// SinceLastAck is the time since the last acknowledged write, up to now or the end.
	// LongestGap is the longest such time.
	SinceLastAck, LongestGap time.Duration
	// Clusters are the cluster IDs of the acknowledgements. More than one means lost data.
	Clusters []uint64
}

// Stats returns the present tally. It may be called at any time.
func (w *Client) Stats() Stats {
	gap := w.LongestGap(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := Stats{Acknowledged: len(w.acked), Failed: w.failed, LastFailure: w.failure, LongestGap: gap, SinceLastAck: w.now().Sub(w.last())}
	for id := range w.clusters {
		t.Clusters = append(t.Clusters, id)
	}
	slices.Sort(t.Clusters)
	return t
}

// LongestGap returns the longest time without an acknowledgement after since. A gap that
// began earlier counts from since.
func (w *Client) LongestGap(since time.Time) time.Duration {
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

// String returns the tally in one line.
func (t Stats) String() string {
	text := fmt.Sprintf("%d writes acknowledged, %d unknown, longest gap %s", t.Acknowledged, t.Failed, t.LongestGap.Round(time.Millisecond))
	if t.LastFailure != nil {
		text += fmt.Sprintf(" (last: %v)", t.LastFailure)
	}
	return text
}

// now returns the present time, or the end of the writes.
func (w *Client) now() time.Time {
	if w.ended.IsZero() {
		return time.Now()
	}
	return w.ended
}

func (w *Client) last() time.Time {
	if len(w.acked) == 0 {
		return w.began
	}
	return w.acked[len(w.acked)-1].at
}
