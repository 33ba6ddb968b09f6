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
	// guardEvery is how often the sentinel asks a leader. Alarms are to be reported within 10
	// seconds, and a leader that is cut off within 15. A call costs 0.1 ms of processor time.
	guardEvery = 7 * time.Second
	// guardWithin is how long the leader may take for the answer.
	guardWithin = 2 * time.Second
	// guardTick is how often the sentinel looks whom to ask.
	guardTick = time.Second
)

// sentinel keeps the last word of each cluster's leader, and asks the leader again.
type sentinel struct {
	mu    sync.Mutex
	posts map[types.NamespacedName]post
}

// post is a leader, and what it said in the last turn.
type post struct {
	line   *grpc.ClientConn
	leader uint64
	errors []string
	due    time.Time
}

func newSentinel() *sentinel { return &sentinel{posts: map[types.NamespacedName]post{}} }

// station notes what the leader said in a turn. Without a leader the planner's own pace is
// quick enough.
func (s *sentinel) station(want *etcdv1.EtcdCluster, speakers []answer, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(want)
	if want.DeletionTimestamp != nil || len(speakers) == 0 {
		delete(s.posts, key)
		return
	}
	first := speakers[0]
	s.posts[key] = post{line: first.line, leader: first.status.Leader, errors: first.status.Errors, due: now.Add(guardEvery)}
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
						d.sentinel.leave(key, p)
						wake(key)
					}
				}()
			}
		}
	}
}

// dueBy returns those that are to be asked, and notes when they are next.
func (s *sentinel) dueBy(now time.Time) map[types.NamespacedName]post {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := map[types.NamespacedName]post{}
	for key, p := range s.posts {
		if !now.Before(p.due) {
			p.due = now.Add(guardEvery)
			s.posts[key], due[key] = p, p
		}
	}
	return due
}

// leave forgets the leader until the next turn, unless a turn has come meanwhile.
func (s *sentinel) leave(key types.NamespacedName, p post) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.posts[key].line == p.line {
		delete(s.posts, key)
	}
}

// unchanged says that the leader answers what it answered in the last turn.
func (p post) unchanged(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, guardWithin)
	defer cancel()
	said, err := pb.NewMaintenanceClient(p.line).Status(ctx, &pb.StatusRequest{})
	return err == nil && said.Leader == p.leader && slices.Equal(said.Errors, p.errors)
}
