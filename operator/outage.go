package operator

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// brief is how long the API server may be away without harm: so far apart are the looks of watches that broke, then.
const brief = 5 * time.Second

// errOutage says that the API server was away and is ready again.
var errOutage = errors.New("the API server was away")

// outage notices that the API server is away by the requests that fail. Watches that live through an outage look again
// ever later, after up to a minute (client-go's reflectors wait 30 s, and up to as long again). Who begins anew sees at
// once.
type outage struct{ noticed chan struct{} }

func newOutage() *outage { return &outage{noticed: make(chan struct{}, 1)} }

// listen returns the configuration with ears for failed requests.
func (o *outage) listen(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return ear{outage: o, RoundTripper: next} })
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

// ear is a transport that tells of requests that failed for no fault of their own.
type ear struct {
	http.RoundTripper
	outage *outage
}

// RoundTrip implements http.RoundTripper.
func (e ear) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.RoundTripper.RoundTrip(request)
	if err != nil && request.Context().Err() == nil || err == nil && response.StatusCode >= http.StatusInternalServerError {
		select {
		case e.outage.noticed <- struct{}{}:
		default: // somebody is looking already
		}
	}
	return response, err
}
