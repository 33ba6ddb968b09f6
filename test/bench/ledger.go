package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"
)

// requests counts requests by verb and resource: "patch deployments".
type requests map[string]int

// ledger reads the operator's requests from the API server's audit log: exact, because
// the API server writes a line before it answers.
type ledger struct {
	path   string
	offset int64
	counts requests
}

// entry is what is read of one audited request.
type entry struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
}

func (e entry) name() string {
	if e.ObjectRef.Subresource != "" {
		return fmt.Sprintf("%s %s/%s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource)
	}
	return e.Verb + " " + e.ObjectRef.Resource
}

// read returns all requests so far.
func (l *ledger) read() (requests, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	err = l.take(raw)
	return maps.Clone(l.counts), err
}

// take counts the whole lines; what follows the last of them is still being written.
func (l *ledger) take(raw []byte) error {
	if l.counts == nil {
		l.counts = requests{}
	}
	for {
		line, rest, whole := bytes.Cut(raw, []byte("\n"))
		if !whole {
			return nil
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("the audit log is not readable: %w", err)
		}
		if e.User.Username == operatorUser {
			l.counts[e.name()]++
		}
		l.offset += int64(len(line) + 1)
		raw = rest
	}
}

// minus returns the requests since the earlier count.
func (r requests) minus(earlier requests) requests {
	since := requests{}
	for name, n := range r {
		if n -= earlier[name]; n > 0 {
			since[name] = n
		}
	}
	return since
}

func (r requests) total() int {
	total := 0
	for _, n := range r {
		total += n
	}
	return total
}

// writes are the requests that change something.
func (r requests) writes() int {
	total := 0
	for name, n := range r {
		switch verb, _, _ := strings.Cut(name, " "); verb {
		case "get", "list", "watch":
		default:
			total += n
		}
	}
	return total
}

// quiet waits until the operator has said all it had to say: events are sent in
// the background.
func (l *ledger) quiet(ctx context.Context) (requests, error) {
	const silence = 2 * time.Second
	look := time.NewTicker(silence / 20)
	defer look.Stop()
	last, since := -1, time.Now()
	for {
		all, err := l.read()
		if err != nil {
			return nil, err
		}
		if n := all.total(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > silence {
			return all, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the operator does not fall silent: %w", ctx.Err())
		case <-look.C:
		}
	}
}
