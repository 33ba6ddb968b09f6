package main

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

// awaitAPI returns when the API server answers, whatever it answers. A process that ended because there is none would be
// started again ever later: the kubelet's patience with crashes ends at five minutes, and so long nobody would be there
// when the API server is back.
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
	told := false
	return patience.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		err := ask(ctx, client, server.JoinPath("version").String())
		if err != nil && !told {
			ctrl.Log.Info("waiting for the API server", "because", err.Error())
			told = true
		}
		return err == nil, nil
	})
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
