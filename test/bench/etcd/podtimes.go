package main

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podTimes records when each pod was first seen, and first seen ready. Kubernetes records
// these times only to the second.
type podTimes struct {
	mu  sync.Mutex
	all map[types.UID]podTime
}

type podTime struct{ created, ready time.Time }

func (b *podTimes) note(seen any) {
	pod, ok := seen.(*corev1.Pod)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[types.UID]podTime{}
	}
	now, known := time.Now(), b.all[pod.UID]
	if known.created.IsZero() {
		known.created = now
	}
	if known.ready.IsZero() && podReady(pod) {
		known.ready = now
	}
	b.all[pod.UID] = known
}

func (b *podTimes) of(pod types.UID) podTime {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[pod]
}
