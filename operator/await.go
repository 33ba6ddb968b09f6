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

// patience between two questions whether the API server is there.
var patience = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Steps: 9, Cap: 2 * time.Second}

// settling is how long an API server that answers may not call itself ready, before it is taken as it is: it may not let
// this account ask.
const settling = 30 * time.Second

// awaitAPI returns when the API server is ready. A process that ended because there is none, or because a new one forbids
// everything until it knows the roles, would be started again ever later: the kubelet's patience with crashes ends at
// five minutes, and so long nobody would be there when the API server is back.
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
	told, answers := false, time.Time{}
	return patience.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		ready, err := ask(ctx, client, server.JoinPath("readyz").String())
		if err != nil && !told {
			ctrl.Log.Info("waiting for the API server", "because", err.Error())
			told = true
		}
		if err == nil && answers.IsZero() {
			answers = time.Now()
		}
		return ready || err == nil && time.Since(answers) > settling, nil
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
