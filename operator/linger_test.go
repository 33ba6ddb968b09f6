package operator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// untilDone serves until its context ends.
type untilDone struct{ webhook.Server }

func (untilDone) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// The API server calls a pod that is being deleted until it knows the new endpoints. A manager that starts again in the same
// process needs the port at once.
func TestWebhooksOutlastTheProcessForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		ends bool
		want time.Duration
	}{"ProcessEnds": {true, lingerFor}, "StartsAgain": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				process, end := context.WithCancel(t.Context())
				defer end()
				ctx, stop := context.WithCancel(process)
				defer stop()
				ended := make(chan error)
				go func() { ended <- lingering{untilDone{}, process.Done()}.Start(ctx) }()
				synctest.Wait()
				if c.ends {
					end()
				}
				stop()
				from := time.Now()
				if err := <-ended; err != nil || time.Since(from) != c.want {
					t.Errorf("it served for %s more, %v; want %s", time.Since(from), err, c.want)
				}
			})
		})
	}
}
