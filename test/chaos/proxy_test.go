package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// behind is a proxy before an API server that counts writes, and whose watches last until their requests end.
func behind(t *testing.T) (p *proxy, c *http.Client, writes *int) {
	t.Helper()
	writes = new(int)
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			*writes++
		}
		if w.WriteHeader(http.StatusOK); r.URL.Query().Has("watch") {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	p, err := startProxy(&rest.Config{Host: api.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.server.Close(); api.Close() })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CA)
	return p, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}, writes
}

// answers counts the answers to requests by their status; 0 is none.
func answers(t *testing.T, p *proxy, c *http.Client, method string) map[int]int {
	t.Helper()
	found := map[int]int{}
	for range 12 {
		r, err := http.NewRequestWithContext(t.Context(), method, p.Address+"/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if err != nil {
			found[0]++
			continue
		}
		_ = answer.Body.Close()
		found[answer.StatusCode]++
	}
	return found
}

func TestTheProxyDisturbsWhatItIsToldTo(t *testing.T) {
	p, c, writes := behind(t)
	for _, test := range []struct {
		detail, method string
		code, times    int
	}{
		{"", http.MethodPost, http.StatusOK, 12}, {chaos.APIThrottles, http.MethodGet, http.StatusTooManyRequests, 6},
		{chaos.APIConflicts, http.MethodPut, http.StatusConflict, 6}, {chaos.APIConflicts, http.MethodGet, http.StatusOK, 12},
		{chaos.APIFails, http.MethodGet, http.StatusInternalServerError, 4}, {"", http.MethodGet, http.StatusOK, 12},
	} {
		if p.Disturb(test.detail); answers(t, p, c, test.method)[test.code] != test.times {
			t.Errorf("%s %s has not %d answers %d", test.detail, test.method, test.times, test.code)
		}
	}
	p.Disturb(chaos.APILosesAnswers)
	if *writes = 0; answers(t, p, c, http.MethodPost)[0] != 4 || *writes != 12 {
		t.Errorf("%d writes were done, and not 12 with 4 lost answers", *writes)
	}
}

func TestTheProxyDropsWatches(t *testing.T) {
	p, c, _ := behind(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Address+"/api?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	p.Disturb(chaos.APIDropsWatches)
	if _, err := answer.Body.Read(make([]byte, 1)); err == nil || ctx.Err() != nil {
		t.Errorf("the watch goes on: %v", err)
	}
}

// The operator is killed after each second write that has an effect, and before it hears of it.
func TestTheTrapKillsBetweenWrites(t *testing.T) {
	p, c, writes := behind(t)
	killedAt := []int{}
	p.arm(&trap{every: 2, kill: func() { killedAt = append(killedAt, *writes) }})
	heard := []int{}
	for _, path := range []string{"/api/v1/namespaces/n/pods", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", "/api/v1/namespaces/n/pods?dryRun=All", "/api/v1/namespaces/n/secrets", "/api/v1/namespaces/n/pods"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.Address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if heard = append(heard, 0); err == nil {
			heard[len(heard)-1] = answer.StatusCode
			_ = answer.Body.Close()
		}
	}
	if diff := cmp.Diff([]int{4}, killedAt); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{200, 200, 200, 0, 200}, heard); diff != "" {
		t.Error(diff)
	}
}
