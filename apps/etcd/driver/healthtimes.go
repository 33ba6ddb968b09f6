package driver

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// healthTimes remembers since when each member is as it is. A new operator takes up what
// the status says.
type healthTimes struct {
	mu   sync.Mutex
	felt map[types.UID]map[string]beat
}

type beat struct {
	health etcd.Health
	since  time.Time
}

func newHealthTimes() *healthTimes { return &healthTimes{felt: map[types.UID]map[string]beat{}} }

func (p *healthTimes) since(want *etcdv1.EtcdCluster, m etcd.Member, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.felt[want.UID] == nil {
		p.felt[want.UID] = map[string]beat{}
	}
	last, known := p.felt[want.UID][m.Name]
	if !known {
		last = recorded(want, m.Name)
	}
	if last.since.IsZero() || last.health != m.Health {
		// To the second, as the API keeps it: a restart changes nothing.
		last = beat{m.Health, now.Truncate(time.Second)}
	}
	p.felt[want.UID][m.Name] = last
	return last.since
}

func recorded(want *etcdv1.EtcdCluster, name string) beat {
	for _, m := range want.Status.Members {
		if m.Name == name && m.Since != nil {
			health := etcd.Health(m.Health)
			if m.Health == "Unknown" {
				health = etcd.Unknown
			}
			return beat{health, m.Since.Time}
		}
	}
	return beat{}
}

// forget drops those that are not among the members any more.
func (p *healthTimes) forget(cluster types.UID, members map[string]etcd.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.felt[cluster] {
		if _, ok := members[name]; !ok {
			delete(p.felt[cluster], name)
		}
	}
	if len(members) == 0 {
		delete(p.felt, cluster)
	}
}
