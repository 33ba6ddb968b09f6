package main

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// births remember when each pod was first seen and first seen ready. Kubernetes
// itself remembers it to the second only.
type births struct {
	mu  sync.Mutex
	all map[types.UID]birth
}

type birth struct{ born, ready time.Time }

func (b *births) note(seen any) {
	pod, ok := seen.(*corev1.Pod)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[types.UID]birth{}
	}
	now, known := time.Now(), b.all[pod.UID]
	if known.born.IsZero() {
		known.born = now
	}
	if known.ready.IsZero() && podReady(pod) {
		known.ready = now
	}
	b.all[pod.UID] = known
}

func (b *births) of(pod types.UID) birth {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[pod]
}
