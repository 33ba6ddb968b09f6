package operator

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// lingerFor is how long API servers may call the webhooks of a pod after its deletion, until they know
// the new endpoints.
const lingerFor = 3 * time.Second

// lingering is a webhook server that answers for a while after the process was asked to end. The manager
// stops it last, so that nothing acts meanwhile.
type lingering struct {
	webhook.Server
	ending <-chan struct{} // closed once the process was asked to end
}

// Start serves until the context ends, and longer if the process ends, too.
func (l lingering) Start(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-l.ending:
			time.AfterFunc(lingerFor, stop)
		default:
			stop()
		}
	})()
	return l.Server.Start(serving)
}
