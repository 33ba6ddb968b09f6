package server_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"awesome.corp.com/chocolate-factory/machine"
	"awesome.corp.com/chocolate-factory/machine/server"
)

// hall is a machine with an API, and a clock of its own.
type hall struct {
	t   *testing.T
	api *server.Server
	now time.Time
}

func open(t *testing.T) *hall {
	h := &hall{t: t, now: time.Unix(1000, 0)}
	h.api = server.New(machine.New(rand.New(rand.NewPCG(1, 2))), func() time.Time { return h.now })
	return h
}

// ask returns the job that is answered, and requires the status.
func (h *hall) ask(status int, method, path, body string) (job machine.Job) {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.api.ServeHTTP(w, httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body)))
	if w.Code != status {
		h.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, w.Code, w.Body, status)
	}
	if w.Code == http.StatusOK && w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &job); err != nil {
			h.t.Fatal(err)
		}
	}
	return job
}

func TestOneJobAtATime(t *testing.T) {
	h := open(t)
	h.ask(http.StatusOK, http.MethodPut, "/jobs/a", `{"number":1,"sugar":500}`)
	if j := h.ask(http.StatusOK, http.MethodPut, "/jobs/b", `{"number":1,"sugar":100}`); j.Place != 1 {
		t.Errorf("b is at place %d", j.Place)
	}
	h.ask(http.StatusConflict, http.MethodPost, "/jobs/b/bars", "")
	bar := h.ask(http.StatusOK, http.MethodPost, "/jobs/a/bars", "").Bar
	h.ask(http.StatusConflict, http.MethodPost, "/jobs/a/bars", "")
	h.ask(http.StatusConflict, http.MethodPost, "/jobs/a/bars/"+bar.ID+"/senses?samples=5", "")
	h.now = h.now.Add(machine.Making)
	j := h.ask(http.StatusOK, http.MethodPost, "/jobs/a/bars/"+bar.ID+"/senses?samples=5", "")
	if len(j.Bar.Measured.Samples) != 5 || len(j.Bar.Measured.Reference) != 5 {
		t.Errorf("measured %+v", j.Bar.Measured)
	}
	h.ask(http.StatusNotFound, http.MethodDelete, "/jobs/a/bars/another", "")
	h.ask(http.StatusOK, http.MethodPost, "/jobs/a/bars/"+bar.ID+"/delivery", "")
	if j := h.ask(http.StatusOK, http.MethodGet, "/jobs/b", ""); j.Place != machine.Holding {
		t.Errorf("b is at place %d when a has delivered", j.Place)
	}
	h.ask(http.StatusOK, http.MethodDelete, "/jobs/b", "")
	h.ask(http.StatusNotFound, http.MethodGet, "/jobs/b", "")
}

// A client that holds the machine and is silent loses it.
func TestSilentClientLosesTheMachine(t *testing.T) {
	h := open(t)
	h.ask(http.StatusOK, http.MethodPut, "/jobs/a", `{"number":1,"sugar":500}`)
	h.ask(http.StatusOK, http.MethodPut, "/jobs/b", `{"number":1,"sugar":500}`)
	h.now = h.now.Add(machine.Forgetting)
	h.ask(http.StatusOK, http.MethodGet, "/jobs/b", "")
	h.now = h.now.Add(time.Second)
	if j := h.ask(http.StatusOK, http.MethodGet, "/jobs/b", ""); j.Place != machine.Holding {
		t.Errorf("b is at place %d", j.Place)
	}
	h.ask(http.StatusNotFound, http.MethodGet, "/jobs/a", "")
}

func TestBadRequests(t *testing.T) {
	h := open(t)
	h.ask(http.StatusBadRequest, http.MethodPut, "/jobs/a", `{"number":1,"sugar":1001}`)
	h.ask(http.StatusBadRequest, http.MethodPut, "/jobs/a", `{"salt":1}`)
	h.ask(http.StatusBadRequest, http.MethodPut, "/faults", `nonsense`)
	h.ask(http.StatusNotFound, http.MethodGet, "/jobs/a", "")
	h.ask(http.StatusOK, http.MethodPut, "/jobs/a", `{"number":1,"sugar":500}`)
	bar := h.ask(http.StatusOK, http.MethodPost, "/jobs/a/bars", "").Bar
	h.ask(http.StatusBadRequest, http.MethodPost, "/jobs/a/bars/"+bar.ID+"/senses?samples=many", "")
	h.ask(http.StatusBadRequest, http.MethodPost, "/jobs/a/bars/"+bar.ID+"/senses?samples=0", "")
}

func TestFaults(t *testing.T) {
	h := open(t)
	h.ask(http.StatusOK, http.MethodPut, "/faults", `{"down":true}`)
	h.ask(http.StatusServiceUnavailable, http.MethodGet, "/healthz", "")
	h.ask(http.StatusOK, http.MethodPut, "/faults", `{"wrongBatch":50,"drift":-50,"slowMilliseconds":1000}`)
	h.ask(http.StatusOK, http.MethodGet, "/healthz", "")
	h.ask(http.StatusOK, http.MethodPut, "/jobs/a", `{"number":1,"sugar":500}`)
	bar := h.ask(http.StatusOK, http.MethodPost, "/jobs/a/bars", "").Bar
	h.now = h.now.Add(machine.Making)
	h.ask(http.StatusConflict, http.MethodPost, "/jobs/a/bars/"+bar.ID+"/senses?samples=99", "")
	h.now = h.now.Add(time.Second)
	m := h.ask(http.StatusOK, http.MethodPost, "/jobs/a/bars/"+bar.ID+"/senses?samples=99", "").Bar.Measured
	near := func(samples []int, want int) bool {
		n := 0
		for _, s := range samples {
			if s > want-20 && s < want+20 {
				n++
			}
		}
		return n > 80
	}
	if !near(m.Samples, 500) || !near(m.Reference, 450) {
		t.Errorf("a batch with 50 too much, seen with 50 too little: %+v", m)
	}
	h.ask(http.StatusOK, http.MethodPost, "/forget", "")
	h.ask(http.StatusNotFound, http.MethodGet, "/jobs/a", "")
}
