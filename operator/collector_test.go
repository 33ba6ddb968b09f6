package operator

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestCollector(t *testing.T) {
	clock := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var said []int
	given := 0
	c := &collector{
		now: func() time.Time { return clock }, percent: func(p int) { said = append(said, p) }, giveUp: func() { given++ },
		after: func(d time.Duration, _ func()) *time.Timer { return time.NewTimer(time.Hour) },
	}
	collect := func(later ...time.Duration) {
		for _, d := range later {
			clock = clock.Add(d)
			c.ran()
		}
	}
	collect(time.Minute, 10*time.Second, hurried)
	if said != nil {
		t.Errorf("now and then is no hurry, got %v", said)
	}
	collect(time.Second, time.Second, time.Millisecond)
	if !slices.Equal(said, []int{swift}) || given != 0 {
		t.Errorf("a hurry is said once, got %v", said)
	}
	c.rest()
	if !slices.Equal(said, []int{swift, thrifty}) || given != 1 {
		t.Errorf("after it memory is given back, got %v, %d times", said, given)
	}
	collect(lull, time.Second)
	if !slices.Equal(said, []int{swift, thrifty, swift}) {
		t.Errorf("there may be another, got %v", said)
	}
}

// A collection of the real collector is noted, and so is the next.
func TestCollectionsAreNoted(t *testing.T) {
	ran := make(chan struct{}, 100)
	c := &collector{now: func() time.Time { ran <- struct{}{}; return time.Time{} }, percent: func(int) {}, after: time.AfterFunc, giveUp: func() {}}
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
