package driver

import (
	"context"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

const (
	// guardInterval is how often the sentinel queries a leader. Governor must report alarms
	// within 10 seconds, and an unreachable leader within 15. A call costs 0.1 ms of CPU time.
	guardInterval = 7 * time.Second
	// guardWithin is how long the leader may take for the answer.
	guardWithin = 2 * time.Second
	// guardTick is how often the sentinel looks for due queries.
	guardTick = time.Second
)

// sentinel records the last answer of each cluster's leader, and queries the leader between
// reconciles.
type sentinel struct {
	mu      sync.Mutex
	watches map[types.NamespacedName]watch
}

// watch is a leader and its answer in the last reconcile.
type watch struct {
	conn   *grpc.ClientConn
	leader uint64
	errors []string
	due    time.Time
}

func newSentinel() *sentinel { return &sentinel{watches: map[types.NamespacedName]watch{}} }

// record records the leader's answer. Without a leader the planner's own polling suffices.
func (s *sentinel) record(want *etcdv1.EtcdCluster, quorumMembers []answer, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(want)
	if len(quorumMembers) == 0 {
		delete(s.watches, key)
		return
	}
	first := quorumMembers[0]
	s.watches[key] = watch{conn: first.conn, leader: first.status.Leader, errors: first.status.Errors, due: now.Add(guardInterval)}
}

// Guard implements lifecycle.Sentinel.
func (d *Driver) Guard(ctx context.Context, wake func(types.NamespacedName)) {
	tick := time.NewTicker(guardTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for key, p := range d.sentinel.dueBy(d.now()) {
				go func() {
					if !p.unchanged(ctx) {
						d.sentinel.forget(key, p)
						wake(key)
					}
				}()
			}
		}
	}
}

// dueBy returns the watches that are due, and schedules their next query.
func (s *sentinel) dueBy(now time.Time) map[types.NamespacedName]watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := map[types.NamespacedName]watch{}
	for key, p := range s.watches {
		if !now.Before(p.due) {
			p.due = now.Add(guardInterval)
			s.watches[key], due[key] = p, p
		}
	}
	return due
}

// forget removes the leader until the next reconcile, unless a reconcile has recorded it again.
func (s *sentinel) forget(key types.NamespacedName, p watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[key].conn == p.conn {
		delete(s.watches, key)
	}
}

// unchanged reports whether the leader repeats its last recorded answer.
func (p watch) unchanged(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, guardWithin)
	defer cancel()
	said, err := pb.NewMaintenanceClient(p.conn).Status(ctx, &pb.StatusRequest{})
	return err == nil && said.Leader == p.leader && slices.Equal(said.Errors, p.errors)
}
