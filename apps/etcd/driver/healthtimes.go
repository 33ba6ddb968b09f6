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
}

func newHealthTimes() *healthTimes {
	return &healthTimes{entries: map[types.UID]map[string]healthEntry{}}
}

func (p *healthTimes) since(want *etcdv1.EtcdCluster, m etcd.Member, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[want.UID] == nil {
		p.entries[want.UID] = map[string]healthEntry{}
	}
	last, known := p.entries[want.UID][m.Name]
	if !known {
		last = recorded(want, m.Name)
	}
	if last.since.IsZero() || last.health != m.Health {
		// The API stores seconds, so a restart of the operator changes nothing.
		last = healthEntry{m.Health, now.Truncate(time.Second)}
	}
	p.entries[want.UID][m.Name] = last
	return last.since
}

func recorded(want *etcdv1.EtcdCluster, name string) healthEntry {
	for _, m := range want.Status.Members {
		if m.Name == name && m.Since != nil {
			health := etcd.Health(m.Health)
			if m.Health == "Unknown" {
				health = etcd.Unknown
			}
			return healthEntry{health, m.Since.Time}
		}
	}
	return healthEntry{}
}

// forget removes entries of members that no longer exist.
func (p *healthTimes) forget(cluster types.UID, members map[string]etcd.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.entries[cluster] {
		if _, ok := members[name]; !ok {
			delete(p.entries[cluster], name)
		}
	}
	if len(members) == 0 {
		delete(p.entries, cluster)
	}
}
