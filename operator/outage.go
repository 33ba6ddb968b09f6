package operator

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// brief is the maximum length of an outage that needs no restart: broken watches then retry at most this far apart.
const brief = 5 * time.Second

// errOutage reports that the API server was unavailable and is ready again.
var errOutage = errors.New("the API server was away")

// outage detects an unavailable API server by failed requests. Watches retry after an outage with a backoff of up to a
// minute (client-go's reflectors wait 30 s, and up to as long again). A restarted manager lists and watches at once.
type outage struct{ noticed chan struct{} }

func newOutage() *outage { return &outage{noticed: make(chan struct{}, 1)} }

// listen returns the configuration with a transport that reports failed requests.
func (o *outage) listen(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{outage: o, RoundTripper: next} })
	return cfg
}

// over returns errOutage when an outage that was not brief has ended, and another error when the context has.
func (o *outage) over(ctx context.Context, cfg *rest.Config) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.noticed:
		}
		began := time.Now()
		if err := awaitAPI(ctx, cfg); err != nil {
			return err
		}
		if time.Since(began) > brief {
			return errOutage
		}
	}
}

// transport reports requests that failed because of the API server or the network.
type transport struct {
	http.RoundTripper
	outage *outage
}

// RoundTrip implements http.RoundTripper.
func (e transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.RoundTripper.RoundTrip(request)
	if err != nil && request.Context().Err() == nil || err == nil && response.StatusCode >= http.StatusInternalServerError {
		select {
		case e.outage.noticed <- struct{}{}:
		default: // the outage is already being handled
		}
	}
	return response, err
}
