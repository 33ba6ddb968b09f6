package operator

import (
	"runtime"
	"testing"
	"time"
)

func TestCollector(t *testing.T) {
	clock, given := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), 0
	c := &collector{now: func() time.Time { return clock }, giveUp: func() { given++ }}
	collect := func(later ...time.Duration) {
		for _, d := range later {
			clock = clock.Add(d)
			c.ran()
		}
	}
	collect(time.Minute, 10*time.Second, burstInterval)
	if c.burst {
		t.Error("two separate collections are no burst")
	}
	collect(time.Second, time.Second, time.Minute)
	if !c.burst || given != 0 {
		t.Errorf("in a burst: %t, memory was returned %d times", c.burst, given)
	}
	c.end.Stop()
	c.endBurst()
	if c.burst || given != 1 {
		t.Errorf("after the burst, still in it: %t, memory was returned %d times", c.burst, given)
	}
	if collect(burstEnd); c.burst {
		t.Error("returning memory is a collection too, and no burst")
	}
}

// A collection of the real collector is noted, and so is the next.
func TestCollectionsAreNoted(t *testing.T) {
	ran := make(chan struct{}, 1)
	c := &collector{giveUp: func() {}, now: func() time.Time {
		select {
		case ran <- struct{}{}:
		default:
		}
		return time.Time{}
	}}
	c.follow()
	for range 2 {
		for noted := false; !noted; {
			runtime.GC()
			select {
			case <-ran:
				noted = true
			case <-t.Context().Done():
				t.Fatal("never noted")
			case <-time.After(time.Millisecond):
			}
		}
	}
}
