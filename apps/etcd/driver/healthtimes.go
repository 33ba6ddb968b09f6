package driver

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// healthTimes records since when each member's health is unchanged. A restarted operator
// continues from the status.
type healthTimes struct {
	mu      sync.Mutex
	entries map[types.UID]map[string]healthEntry
}

type healthEntry struct {
	health etcd.Health
	since  time.Time
	first  time.Time // when this process first observed it
}

// watched is when this process first observed the health, by the present clock. The first time
// has a reading of the monotonic clock, which nothing sets. A clock that drifts does not change
// the result.
func watched(first, now time.Time) time.Time {
	return rebased(first.Round(0), now.Round(0), now.Sub(first))
}

// rebased corrects the first time if the clock was set since: it says that another time has
// elapsed since then.
func rebased(first, now time.Time, elapsed time.Duration) time.Time {
	set := now.Sub(first) - elapsed
	return first.Truncate(time.Second).Add(set.Truncate(time.Second))
}

func newHealthTimes() *healthTimes {
	return &healthTimes{entries: map[types.UID]map[string]healthEntry{}}
}

// watchAgain gives the member its whole time to answer: it starts again.
func (p *healthTimes) watchAgain(want *etcdv1.EtcdCluster, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if entry, ok := p.entries[want.UID][name]; ok {
		entry.first = time.Time{}
		p.entries[want.UID][name] = entry
	}
}

// record sets the times of the members' health, and removes entries of members that no longer
// exist. The time to answer begins once the certificates are usable.
func (p *healthTimes) record(want *etcdv1.EtcdCluster, members []etcd.Member, usable bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, entries := p.entries[want.UID], map[string]healthEntry{}
	for i := range members {
		m := &members[i]
		last, known := before[m.Name]
		if !known {
			last = recorded(want, m.Name)
		}
		if !usable {
			last.first = time.Time{}
		}
		entries[m.Name] = last.after(*m, now)
		m.Since, m.Watched = entries[m.Name].since, watched(entries[m.Name].first, now)
	}
	p.entries[want.UID] = entries
	if len(entries) == 0 {
		delete(p.entries, want.UID)
	}
}

// after is the entry after the present health was observed.
func (last healthEntry) after(m etcd.Member, now time.Time) healthEntry {
	if last.since.IsZero() || last.health != m.Health {
		// The API stores seconds, so a restart of the operator changes nothing.
		last = healthEntry{health: m.Health, since: now.Truncate(time.Second)}
	}
	if last.first.IsZero() {
		last.first = now
	}
	return last
}

func recorded(want *etcdv1.EtcdCluster, name string) healthEntry {
	m := etcd.Remembered(want, name)
	if m.Since == nil {
		return healthEntry{}
	}
	health := etcd.Health(m.Health)
	if m.Health == etcdv1.MemberHealthUnknown {
		health = etcd.Unknown
	}
	return healthEntry{health: health, since: m.Since.Time}
}
