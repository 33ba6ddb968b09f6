package certificate

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// planCache holds, per owner, the state in which nothing had to be issued, and until when.
// A cached state is not parsed again.
type planCache struct {
	mu     sync.Mutex
	states map[types.NamespacedName]cachedState
}

type cachedState struct {
	digest [sha256.Size]byte
	due    time.Time
}

func (c *planCache) put(owner types.NamespacedName, s cachedState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.states == nil {
		c.states = map[types.NamespacedName]cachedState{}
	}
	c.states[owner] = s
}

// due returns when to decide about the state again, and false if that is now.
func (c *planCache) due(owner types.NamespacedName, digest [sha256.Size]byte, now time.Time) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.states[owner]
	return s.due, ok && s.digest == digest && now.Before(s.due)
}

func (c *planCache) forget(owner types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, owner)
}
