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
	says  error
	asked atomic.Int32
}

// errSilent is what a member says that never answers.
var errSilent = errors.New("silence")

func (l *lister) MemberAdd(ctx context.Context, _ *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	l.asked.Add(1)
	if errors.Is(l.says, errSilent) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &pb.MemberAddResponse{}, l.says
}

// line serves the member on this machine.
func (l *lister) line(t *testing.T) *grpc.ClientConn {
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

func TestOthersAreAskedWhenAMemberRefuses(t *testing.T) {
	sick := &lifecycle.Deferred{Reason: "etcd says: etcdserver: unhealthy cluster", After: unhealthyEvery}
	crowded := &lifecycle.Deferred{Reason: "etcd says: etcdserver: too many learner members in cluster"}
	gone := status.Error(codes.Unavailable, "connection refused")
	cases := map[string]struct {
		reason  string
		answers []error
		asked   []int
		want    *lifecycle.Deferred
	}{
		"Fine":     {"the leader does it", []error{nil, nil}, []int{1, 0}, nil},
		"Deluded":  {"a member that takes its peers for disconnected refuses for ever", []error{rpctypes.ErrGRPCUnhealthy, nil}, []int{1, 1}, nil},
		"Gone":     {"the leader has just died", []error{gone, nil}, []int{1, 1}, nil},
		"Done":     {"the one that died has done it", []error{gone, rpctypes.ErrGRPCPeerURLExist}, []int{1, 1}, nil},
		"Silent":   {"what it proposed to a leader that died is lost", []error{errSilent, nil}, []int{1, 1}, nil},
		"Slow":     {"it was only slow, and has done it", []error{errSilent, rpctypes.ErrGRPCPeerURLExist}, []int{1, 1}, nil},
		"Sick":     {"who refuses everywhere is right, and for seconds", []error{rpctypes.ErrGRPCUnhealthy, rpctypes.ErrGRPCUnhealthy}, []int{1, 1}, sick},
		"Learners": {"another refusal is everybody's, and may end at once", []error{rpctypes.ErrGRPCTooManyLearners, nil}, []int{1, 0}, crowded},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view{world: etcd.World{Listed: true}}
			var members []*lister
			for _, err := range c.answers {
				m := &lister{says: err}
				members, v.speakers = append(members, m), append(v.speakers, answer{line: m.line(t)})
			}
			step := lifecycle.Step{Name: etcd.AddLearner, Target: "e-3", Args: map[string]string{etcd.ArgPeerURL: "http://e-3"}}
			err := (&Driver{}).reconfigure(t.Context(), v, step)
			var postponed *lifecycle.Deferred
			errors.As(err, &postponed)
			if diff := cmp.Diff(c.want, postponed); diff != "" || (err == nil) != (c.want == nil) {
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

// slowly gives the leadership to nobody.
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
	says := func(self uint64) *pb.StatusResponse {
		return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: self}, Leader: 1}
	}
	leader := answer{line: serve(t, func(s *grpc.Server) { pb.RegisterMaintenanceServer(s, slowly{}) }), status: says(1)}
	v := view{world: etcd.World{Listed: true}, speakers: []answer{leader, {status: says(2)}}}
	step := lifecycle.Step{Name: etcd.MoveLeader, Target: "e-2", Args: map[string]string{etcd.ArgID: "2", etcd.ArgFrom: "1"}}
	ctx, cancel := context.WithTimeout(t.Context(), othersAfter+200*time.Millisecond)
	defer cancel()
	if err := (&Driver{}).reconfigure(ctx, v, step); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v, and the leader has only not answered yet", err)
	}
}
