// Package server gives a machine its HTTP API:
//
//	PUT    /jobs/{id}                        give it an order: {"number": 1, "sugar": 600}
//	GET    /jobs/{id}                        how far it is
//	POST   /jobs/{id}/bars                   make a bar
//	POST   /jobs/{id}/bars/{bar}/senses?samples=25   measure it
//	POST   /jobs/{id}/bars/{bar}/delivery    hand it out
//	DELETE /jobs/{id}/bars/{bar}             throw it away
//	POST   /jobs/{id}/rest                   let the next job have the machine
//	DELETE /jobs/{id}                        forget it
//	PUT    /faults                           go wrong: {"down": true, "drift": 60, "wrongBatch": 80, "slowMilliseconds": 5000}
//	POST   /forget                           lose all memory, as a power cut does
//	GET    /healthz
//
// What it refuses is 404 for a job or a bar that it does not know, 409 for what is not possible now, and 400 for what
// makes no sense, each with {"error": …}.
package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"awesome.corp.com/chocolate-factory/machine"
)

// most samples of one measurement, and the most sugar that a gram can have, in milligrams.
const most, pure = 1000, 1000

// Server is the machine's API. It implements http.Handler.
type Server struct {
	mux     http.ServeMux
	mu      sync.Mutex
	machine *machine.Machine
	now     func() time.Time
}

// New returns the API of the machine.
func New(m *machine.Machine, now func() time.Time) *Server {
	s := &Server{machine: m, now: now}
	s.mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	s.mux.HandleFunc("PUT /faults", s.faults)
	s.mux.HandleFunc("POST /forget", func(http.ResponseWriter, *http.Request) { s.with(m.Forget) })
	s.mux.HandleFunc("PUT /jobs/{id}", s.put)
	s.mux.HandleFunc("DELETE /jobs/{id}", func(_ http.ResponseWriter, r *http.Request) {
		s.with(func() { m.Drop(r.PathValue("id")) })
	})
	s.answer("GET /jobs/{id}", func(r *http.Request) (machine.Job, error) { return m.Get(s.now(), r.PathValue("id")) })
	s.answer("POST /jobs/{id}/bars", func(r *http.Request) (machine.Job, error) { return m.Make(s.now(), r.PathValue("id")) })
	s.answer("POST /jobs/{id}/rest", func(r *http.Request) (machine.Job, error) { return m.Rest(s.now(), r.PathValue("id")) })
	s.answer("POST /jobs/{id}/bars/{bar}/delivery", func(r *http.Request) (machine.Job, error) {
		return m.Deliver(s.now(), r.PathValue("id"), r.PathValue("bar"))
	})
	s.answer("DELETE /jobs/{id}/bars/{bar}", func(r *http.Request) (machine.Job, error) {
		return m.Dispose(s.now(), r.PathValue("id"), r.PathValue("bar"))
	})
	s.answer("POST /jobs/{id}/bars/{bar}/senses", s.sense)
	return s
}

// ServeHTTP implements http.Handler. A machine that is down answers nothing but what repairs it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var down bool
	s.with(func() { down = s.machine.Faults.Down })
	if down && r.URL.Path != "/faults" {
		refuse(w, http.StatusServiceUnavailable, errors.New("the machine is down"))
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Server) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// answer serves a question whose answer is a job.
func (s *Server) answer(pattern string, ask func(*http.Request) (machine.Job, error)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		var job machine.Job
		var err error
		s.with(func() { job, err = ask(r) })
		if err != nil {
			refuse(w, status(err), err)
			return
		}
		write(w, job)
	})
}

var errBad = errors.New("bad request")

func status(err error) int {
	switch {
	case errors.Is(err, errBad):
		return http.StatusBadRequest
	case errors.Is(err, machine.ErrNoJob), errors.Is(err, machine.ErrNoBar):
		return http.StatusNotFound
	}
	return http.StatusConflict
}

func (s *Server) sense(r *http.Request) (machine.Job, error) {
	samples, err := strconv.Atoi(r.URL.Query().Get("samples"))
	if err != nil || samples < 1 || samples > most {
		return machine.Job{}, fmt.Errorf("%w: samples is %q; use a number from 1 to %d", errBad, r.URL.Query().Get("samples"), most)
	}
	return s.machine.Sense(s.now(), r.PathValue("id"), r.PathValue("bar"), samples)
}

func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	var o machine.Order
	if err := read(r, &o); err != nil || o.Sugar < 0 || o.Sugar > pure {
		refuse(w, http.StatusBadRequest, errors.Join(err, fmt.Errorf("sugar is %d; use a number from 0 to %d", o.Sugar, pure)))
		return
	}
	var job machine.Job
	s.with(func() { job = s.machine.Put(s.now(), r.PathValue("id"), o) })
	write(w, job)
}

func (s *Server) faults(w http.ResponseWriter, r *http.Request) {
	var f machine.Faults
	if err := read(r, &f); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	s.with(func() { s.machine.Faults = f })
}

// read takes one small JSON object without unknown fields.
func read(r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func write(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what) // the client may be gone
}

func refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}
