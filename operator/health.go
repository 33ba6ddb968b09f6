package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// health serves the probes for the whole process, across its managers. The kubelet must not restart a container that
// waits for the API server.
type health struct {
	ready atomic.Pointer[healthz.Handler]
}

// listen serves /healthz and /readyz at the address until the context ends.
func (h *health) listen(ctx context.Context, address string) error {
	if address == "" || address == "0" {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot serve the health probes: %w", err)
	}
	server := &http.Server{Handler: h.paths(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			ctrl.Log.Error(err, "the health probes are no longer served")
		}
	}()
	return nil
}

func (h *health) paths() http.Handler {
	mux := http.NewServeMux()
	for path, handler := range map[string]http.Handler{
		"/healthz": &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}},
		"/readyz":  http.HandlerFunc(h.readyz),
	} {
		mux.Handle(path, http.StripPrefix(path, handler))
		mux.Handle(path+"/", http.StripPrefix(path, handler))
	}
	return mux
}

// readyz serves the checks of the running manager, or 503 without one.
func (h *health) readyz(w http.ResponseWriter, r *http.Request) {
	if handler := h.ready.Load(); handler != nil {
		handler.ServeHTTP(w, r)
		return
	}
	http.Error(w, "the operator waits for the API server", http.StatusServiceUnavailable)
}

// during is ready when the checks are, until the function that it returns is called.
func (h *health) during(checks map[string]healthz.Checker) (end func()) {
	h.ready.Store(&healthz.Handler{Checks: checks})
	return func() { h.ready.Store(nil) }
}
