package operator

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// readyBackoff is the interval between two requests for the API server's readiness.
var readyBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Steps: 9, Cap: 2 * time.Second}

// readyTimeout is how long an API server may answer without being ready before the operator starts anyway: this account
// may not be permitted to read /readyz.
const readyTimeout = 30 * time.Second

// awaitAPI returns when the API server is ready. If the process exited instead, without an API server or while a new one
// refuses all requests until it has loaded the roles, the kubelet would restart it with a backoff of up to five minutes.
// No operator would then run when the API server returns.
func awaitAPI(ctx context.Context, cfg *rest.Config) error {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("cannot talk to the API server: %w", err)
	}
	client.Timeout = 5 * time.Second
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return fmt.Errorf("the API server's address %q: %w", cfg.Host, err)
	}
	logged, answers := false, time.Time{}
	return readyBackoff.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		ready, err := ask(ctx, client, server.JoinPath("readyz").String())
		if err != nil && !logged {
			ctrl.Log.Info("waiting for the API server", "because", err.Error())
			logged = true
		}
		if err == nil && answers.IsZero() {
			answers = time.Now()
		}
		return ready || err == nil && time.Since(answers) > readyTimeout, nil
	})
}

func ask(ctx context.Context, client *http.Client, url string) (ready bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	return response.StatusCode == http.StatusOK, response.Body.Close()
}
