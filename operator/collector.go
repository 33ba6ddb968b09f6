package operator

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// thrift is the collector's percentage: an operator costs memory all day, and processor
	// time now and then. Were it more in a hurry, what stays would lie scattered after it.
	thrift = 25
	// hurried is how soon after another a collection says that there is much to do.
	hurried = 2 * time.Second
	// lull is after how long without a collection there is not any more.
	lull = 5 * time.Second
)

// collector gives the memory back that was needed in a hurry when the hurry is over: the
// runtime itself would keep it until the next collection, which at rest is far away.
type collector struct {
	now    func() time.Time
	giveUp func()

	mu     sync.Mutex
	last   time.Time
	hurry  bool
	settle *time.Timer
}

// tendMemory begins. GOGC wins. Nobody can ask for a profile, for which the runtime would
// keep who asked for memory: a page of its own for most of them.
func tendMemory() {
	runtime.MemProfileRate = 0
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(thrift)
	(&collector{now: time.Now, giveUp: debug.FreeOSMemory}).follow()
}

// follow has every collection noted, by garbage that is made for it.
func (c *collector) follow() {
	runtime.AddCleanup(new([64]byte), func(c *collector) {
		c.ran()
		c.follow()
	}, c)
}

// ran notes a collection.
func (c *collector) ran() {
	c.mu.Lock()
	defer c.mu.Unlock()
	soon := c.now().Sub(c.last) < hurried
	c.last = c.now()
	switch {
	case c.hurry:
		c.settle.Reset(lull)
	case soon:
		c.hurry = true
		c.settle = time.AfterFunc(lull, c.rest)
	}
}

// rest ends the hurry.
func (c *collector) rest() {
	c.mu.Lock()
	c.hurry = false
	c.mu.Unlock()
	c.giveUp()
}
