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

// auditLog reads the operator's requests from the API server's audit log. The counts are
// exact, because the API server writes a line before it responds.
type auditLog struct {
	path   string
	offset int64
	counts requests
}

// entry is the part of an audit event that is read.
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
func (l *auditLog) read() (requests, error) {
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

// take counts complete lines. The API server is still writing an incomplete last line.
func (l *auditLog) take(raw []byte) error {
	if l.counts == nil {
		l.counts = requests{}
	}
	for {
		line, rest, complete := bytes.Cut(raw, []byte("\n"))
		if !complete {
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

// writes returns the number of requests that change something.
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

// quiet waits until the operator sends no more requests: it sends events in the
// background.
func (l *auditLog) quiet(ctx context.Context) (requests, error) {
	const idle = 2 * time.Second
	tick := time.NewTicker(idle / 20)
	defer tick.Stop()
	last, since := -1, time.Now()
	for {
		all, err := l.read()
		if err != nil {
			return nil, err
		}
		if n := all.total(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > idle {
			return all, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the operator keeps sending requests: %w", ctx.Err())
		case <-tick.C:
		}
	}
}
