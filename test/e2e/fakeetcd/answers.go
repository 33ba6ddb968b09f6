//go:build linux

package main

import (
	"io"
	"net/http"
	"os"
	"sync"
	"syscall"
)

// liar answers in place of etcd.
type liar struct {
	etcd *os.Process

	mu  sync.Mutex
	lie string
}

// order changes the reported health.
func (l *liar) order(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	does := syscall.SIGCONT
	switch r.URL.Path {
	case "/fine":
		does = syscall.SIGSTOP
	case "/ill", "/honest":
	default:
		http.NotFound(w, r)
		return
	}
	if err := l.etcd.Signal(does); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	l.lie = r.URL.Path
}

func (l *liar) says() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lie
}

// health is the real or a false health.
func (l *liar) health(w http.ResponseWriter, r *http.Request) {
	switch l.says() {
	case "/fine":
		_, _ = io.WriteString(w, `{"health":"true","reason":""}`)
		return
	case "/ill":
		http.Error(w, `{"health":"false","reason":"it is a lie"}`, http.StatusServiceUnavailable)
		return
	}
	truth, err := l.ask(r.Context(), r.URL.RequestURI())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer truth.Body.Close()
	w.WriteHeader(truth.StatusCode)
	_, _ = io.Copy(w, truth.Body)
}
