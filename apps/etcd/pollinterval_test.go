package etcd_test

import (
	"testing"
	"time"

	"github.com/governor-dev/governor/apps/etcd"
)

// The interval of queries to etcd: no event reports the election of a leader.
func TestPollInterval(t *testing.T) {
	away := func(ago time.Duration) scene {
		s := serving(3).silent()
		for _, m := range s.Members {
			s = s.with(m.Name, func(m *etcd.Member) { m.Since, m.Pod.Since = noon.Add(-time.Hour), noon.Add(-time.Hour) })
		}
		return s.with("e-1", func(m *etcd.Member) { m.Health, m.Since = etcd.Unhealthy, noon.Add(-ago) })
	}
	cases := map[string]struct {
		reason string
		seen   scene
		want   time.Duration
	}{
		"Settled":  {"Kubernetes reports changes", serving(3), time.Minute},
		"Election": {"an election takes a second or two", away(0), 200 * time.Millisecond},
		"Slow":     {"a long interval detects it late", away(20 * time.Second), 2 * time.Second},
		"ForLong":  {"a short interval for hours detects it no earlier", away(time.Hour), 10 * time.Second},
	}
	for name, c := range cases {
		d := etcd.Planner{}.Next(told(wanted(3), serving(3)), c.seen.World, noon)
		if d.After != c.want {
			t.Errorf("%s: %s: %s is observed again after %v, want %v", name, c.reason, d, d.After, c.want)
		}
	}
}
