package operator

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

var errRefused = errors.New("connection refused")

// server is an API server that may be away or unwell, without a network.
type server struct{ away, unwell atomic.Bool }

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	if s.away.Load() {
		return nil, errRefused
	}
	response := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}
	if s.unwell.Load() {
		response.StatusCode = http.StatusInternalServerError
	}
	return response, nil
}

func (s *server) config() *rest.Config { return &rest.Config{Host: "http://api", Transport: s} }

// call makes a request as the operator's clients do.
func call(ctx context.Context, t *testing.T, o *outage, s *server) {
	t.Helper()
	client, err := rest.HTTPClientFor(o.listen(s.config()))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/apis", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := client.Do(request); err == nil {
		_ = response.Body.Close()
	}
}

// after runs an outage as long as the given time and returns whether the process restarts, and how long afterwards.
func after(t *testing.T, length time.Duration, ail func(*server) *atomic.Bool) (restarts bool, later time.Duration) {
	t.Helper()
	s, o := &server{}, newOutage()
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	said := make(chan error, 1)
	go func() { said <- o.over(ctx, s.config()) }()
	ail(s).Store(true)
	call(ctx, t, o, s)
	time.Sleep(length) // of the bubble's own clock
	ail(s).Store(false)
	ended := time.Now()
	err := <-said
	return errors.Is(err, errOutage), time.Since(ended)
}

func TestProcessRestartsAfterAnOutage(t *testing.T) {
	ails := map[string]func(*server) *atomic.Bool{
		"away":   func(s *server) *atomic.Bool { return &s.away },
		"unwell": func(s *server) *atomic.Bool { return &s.unwell },
	}
	for name, ail := range ails {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if restarts, later := after(t, 25*time.Second, ail); !restarts || later > 2*time.Second {
					t.Errorf("restarts: %v, %s after the API server was back", restarts, later)
				}
			})
		})
		t.Run(name+" for a moment", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if restarts, _ := after(t, time.Second, ail); restarts {
					t.Error("watches that broke for a second look again by themselves")
				}
			})
		})
	}
}

// A canceled request is no outage.
func TestARequestThatIsGivenUpIsNoOutage(t *testing.T) {
	s, o := &server{}, newOutage()
	s.away.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	call(ctx, t, o, s)
	if len(o.noticed) > 0 {
		t.Error("it was taken for one")
	}
}
