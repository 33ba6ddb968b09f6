package driver

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
)

// reachWithin is how long a pod's address may take to answer TCP. A running host refuses or
// accepts within a round trip.
const reachWithin = 300 * time.Millisecond

// findUnreachable finds members that are ready in Kubernetes, do not answer, and are on failed
// hosts, which Kubernetes detects within about a minute. A running host answers TCP even if etcd
// does not.
func findUnreachable(ctx context.Context, p parts, members []etcd.Member) {
	var all sync.WaitGroup
	for i := range members {
		m := &members[i]
		pod := p.pods[m.Name]
		if m.Health != etcd.Unknown || m.Silence != "" || !m.Pod.Ready || m.Pod.Leaving || pod == nil || pod.Status.PodIP == "" {
			continue
		}
		all.Go(func() {
			if !answersTCP(ctx, net.JoinHostPort(pod.Status.PodIP, clientPort)) {
				m.Silence = "nothing answers at the address of its pod on the node " + m.Pod.Node
			}
		})
	}
	all.Wait()
}

// answersTCP reports whether the host accepts or refuses a connection.
func answersTCP(ctx context.Context, address string) bool {
	dialer := net.Dialer{Timeout: reachWithin}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
		return true
	}
	var failed net.Error
	timeout := errors.As(err, &failed) && failed.Timeout() || errors.Is(err, syscall.EHOSTUNREACH)
	return ctx.Err() != nil || !timeout
}
