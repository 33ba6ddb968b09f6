package driver

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/apps/etcd"
)

const (
	// podWithin is how long a StatefulSet may take to create its pod before events are read.
	podWithin = 3 * time.Second
	// eventWithin is the maximum age of an event: the StatefulSet controller retries after at
	// most 17 minutes, and each failure creates an event.
	eventWithin = 20 * time.Minute
)

// findRefusedPods adds why the API server rejects members' pods, such as a ResourceQuota, a
// LimitRange or an admission webhook. Only Events have these messages. It reads them from the
// API server, and only for a StatefulSet without a pod.
func (d *Driver) findRefusedPods(ctx context.Context, p parts, members []etcd.Member) {
	for i, m := range members {
		set := p.sets[m.Name]
		if set == nil || m.Pod.Exists || d.now().Sub(latest(set.CreationTimestamp.Time, m.Since)) < podWithin {
			continue
		}
		members[i].Set.Problem = d.failedCreate(ctx, set)
	}
}

// failedCreate is the API server's error in the last event of the StatefulSet. Without
// permission to read events it is empty.
func (d *Driver) failedCreate(ctx context.Context, set *appsv1.StatefulSet) string {
	var events corev1.EventList
	err := d.live.List(ctx, &events, client.InNamespace(set.Namespace), client.MatchingFields{
		"involvedObject.kind": "StatefulSet", "involvedObject.name": set.Name, "reason": "FailedCreate",
	})
	if err != nil {
		return ""
	}
	var last time.Time
	words := ""
	for _, e := range events.Items {
		at := latest(e.LastTimestamp.Time, e.EventTime.Time)
		if e.Series != nil {
			at = latest(at, e.Series.LastObservedTime.Time)
		}
		if e.InvolvedObject.UID == set.UID && at.After(last) && d.now().Sub(at) < eventWithin {
			last, words = at, e.Message
		}
	}
	if _, said, ok := strings.Cut(words, "failed error: "); ok {
		words = said
	}
	return strings.TrimSuffix(words, ".")
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
