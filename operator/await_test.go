package operator

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// A new API server forbids everything until it knows the roles: that it answers is not enough.
func TestAwaitAPIWaitsUntilItIsReady(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := asked.Add(1); n < 3 {
			w.WriteHeader(http.StatusForbidden)
		}
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
	}))
	defer server.Close()
	if err := awaitAPI(t.Context(), &rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("the API server was ready at the third question, and was asked %d times", n)
	}
}
