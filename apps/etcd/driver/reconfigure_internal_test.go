package driver

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// lister is a member that answers every change of the list with one error, or does it.
type lister struct {
	pb.UnimplementedClusterServer
	err   error
	asked atomic.Int32
}

// errSilent is what a member says that never answers.
var errSilent = errors.New("silence")

func (l *lister) MemberAdd(ctx context.Context, _ *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	l.asked.Add(1)
	if errors.Is(l.err, errSilent) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &pb.MemberAddResponse{}, l.err
}

// line serves the member on this machine.
func (l *lister) conn(t *testing.T) *grpc.ClientConn {
	t.Helper()
	return serve(t, func(s *grpc.Server) { pb.RegisterClusterServer(s, l) })
}

func serve(t *testing.T, register func(*grpc.Server)) *grpc.ClientConn {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestReconfigureRetriesWithOtherMembers(t *testing.T) {
	sick := &lifecycle.Deferred{Reason: "etcd refuses: etcdserver: unhealthy cluster", After: unhealthyRetry}
	crowded := &lifecycle.Deferred{Reason: "etcd refuses: etcdserver: too many learner members in cluster"}
	gone := status.Error(codes.Unavailable, "connection refused")
	cases := map[string]struct {
		reason  string
		answers []error
		asked   []int
		want    *lifecycle.Deferred
	}{
		"Fine":     {"the leader does it", []error{nil, nil}, []int{1, 0}, nil},
		"Deluded":  {"a member that takes its peers for disconnected refuses for ever", []error{rpctypes.ErrGRPCUnhealthy, nil}, []int{1, 1}, nil},
		"Gone":     {"the leader has just failed", []error{gone, nil}, []int{1, 1}, nil},
		"Done":     {"the failed member has done it", []error{gone, rpctypes.ErrGRPCPeerURLExist}, []int{1, 1}, nil},
		"Silent":   {"what it proposed to a leader that died is lost", []error{errSilent, nil}, []int{1, 1}, nil},
		"Slow":     {"it was only slow, and has done it", []error{errSilent, rpctypes.ErrGRPCPeerURLExist}, []int{1, 1}, nil},
		"Sick":     {"a refusal by all members is final for seconds", []error{rpctypes.ErrGRPCUnhealthy, rpctypes.ErrGRPCUnhealthy}, []int{1, 1}, sick},
		"Learners": {"another refusal is everybody's, and may end at once", []error{rpctypes.ErrGRPCTooManyLearners, nil}, []int{1, 0}, crowded},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view{world: etcd.World{Listed: true}}
			var members []*lister
			for _, err := range c.answers {
				m := &lister{err: err}
				members, v.quorumMembers = append(members, m), append(v.quorumMembers, answer{conn: m.conn(t)})
			}
			step := lifecycle.Step{Name: etcd.AddLearner, Target: "e-3", Args: map[string]string{etcd.ArgPeerURL: "http://e-3"}}
			err := (&Driver{}).reconfigure(t.Context(), v, step)
			var deferred *lifecycle.Deferred
			errors.As(err, &deferred)
			if diff := cmp.Diff(c.want, deferred); diff != "" || (err == nil) != (c.want == nil) {
				t.Errorf("%s: %v\n%s", c.reason, err, diff)
			}
			for i, m := range members {
				if asked := int(m.asked.Load()); asked != c.asked[i] {
					t.Errorf("%s: member %d was asked %d times, not %d", c.reason, i, asked, c.asked[i])
				}
			}
		})
	}
}

// slowly never transfers the leadership.
type slowly struct {
	pb.UnimplementedMaintenanceServer
}

func (slowly) MoveLeader(ctx context.Context, _ *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// No other member can do it, and none is said to lead because the leader is slow.
func TestOnlyTheLeaderMovesTheLeadership(t *testing.T) {
	t.Parallel()
	statusOf := func(self uint64) *pb.StatusResponse {
		return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: self}, Leader: 1}
	}
	leader := answer{conn: serve(t, func(s *grpc.Server) { pb.RegisterMaintenanceServer(s, slowly{}) }), status: statusOf(1)}
	v := view{world: etcd.World{Listed: true}, quorumMembers: []answer{leader, {status: statusOf(2)}}}
	step := lifecycle.Step{Name: etcd.MoveLeader, Target: "e-2", Args: map[string]string{etcd.ArgID: "2", etcd.ArgFrom: "1"}}
	ctx, cancel := context.WithTimeout(t.Context(), othersAfter+200*time.Millisecond)
	defer cancel()
	if err := (&Driver{}).reconfigure(ctx, v, step); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v, and the leader has only not answered yet", err)
	}
}
