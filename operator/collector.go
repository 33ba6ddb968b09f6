package operator

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// thrifty is the collector's percentage at rest: an operator costs memory then, and
	// hardly any processor time.
	thrifty = 50
	// swift is that while there is much to do: a third of the processor time of a
	// thousand objects would be the collector's.
	swift = 100
	// hurried is how soon after another a collection says that there is much to do.
	hurried = 2 * time.Second
	// lull is after how long without a collection there is not any more.
	lull = 5 * time.Second
)

// collector sets how often garbage is collected, by how often it is: memory that was
// needed in a hurry is given back when the hurry is over.
type collector struct {
	now     func() time.Time
	percent func(int)
	giveUp  func() // gives memory back
	after   func(time.Duration, func()) *time.Timer

	mu     sync.Mutex
	last   time.Time
	hurry  bool
	settle *time.Timer
}

// tendMemory begins. GOGC wins.
func tendMemory() {
	if os.Getenv("GOGC") != "" {
		return
	}
	c := &collector{
		now: time.Now, after: time.AfterFunc, giveUp: debug.FreeOSMemory,
		percent: func(p int) { debug.SetGCPercent(p) },
	}
	c.percent(thrifty)
	c.follow()
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
		c.percent(swift)
		c.settle = c.after(lull, c.rest)
	}
}

// rest ends the hurry.
func (c *collector) rest() {
	c.mu.Lock()
	c.hurry = false
	c.percent(thrifty)
	c.mu.Unlock()
	c.giveUp()
}
