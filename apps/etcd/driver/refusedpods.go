package driver

import (
	"context"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/pod"
)

// findRefusedPods adds why the API server rejects members' pods, such as a ResourceQuota, a
// LimitRange or an admission webhook. It reads events, and only for a StatefulSet without a pod.
func (d *Driver) findRefusedPods(ctx context.Context, p parts, members []etcd.Member) {
	for i, m := range members {
		set := p.sets[m.Name]
		if set == nil || m.Pod.Exists || d.now().Sub(latest(set.CreationTimestamp.Time, m.Since)) < pod.RefusedAfter {
			continue
		}
		members[i].Set.Problem = pod.Refused(ctx, d.live, "StatefulSet", set, d.now().Add(-pod.EventWithin))
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
