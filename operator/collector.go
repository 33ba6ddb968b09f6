package operator

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// gcPercent is the GC percentage. An operator uses memory all day, and CPU only now and
	// then. A larger value would leave the live heap fragmented after a burst.
	gcPercent = 25
	// burstInterval is the maximum time between two collections of a burst.
	burstInterval = 2 * time.Second
	// burstEnd is the time without a collection after which a burst has ended.
	burstEnd = 5 * time.Second
)

// collector returns memory to the system at the end of a burst. The runtime itself would
// keep it until the next collection, which on an idle operator comes much later.
type collector struct {
	now    func() time.Time
	giveUp func()

	mu    sync.Mutex
	last  time.Time
	burst bool
	end   *time.Timer
}

// tuneMemory configures the garbage collector. GOGC takes precedence. It disables memory
// profiles, which no endpoint serves and for which the runtime would record allocations.
func tuneMemory() {
	runtime.MemProfileRate = 0
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(gcPercent)
	(&collector{now: time.Now, giveUp: debug.FreeOSMemory}).follow()
}

// follow calls ran after every collection, through the cleanup of an unreachable object.
func (c *collector) follow() {
	runtime.AddCleanup(new([64]byte), func(c *collector) {
		c.ran()
		c.follow()
	}, c)
}

// ran records a collection.
func (c *collector) ran() {
	c.mu.Lock()
	defer c.mu.Unlock()
	soon := c.now().Sub(c.last) < burstInterval
	c.last = c.now()
	switch {
	case c.burst:
		c.end.Reset(burstEnd)
	case soon:
		c.burst = true
		c.end = time.AfterFunc(burstEnd, c.endBurst)
	}
}

// endBurst returns the memory of a burst.
func (c *collector) endBurst() {
	c.mu.Lock()
	c.burst = false
	c.mu.Unlock()
	c.giveUp()
}
