package driver

import (
	"context"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/governor-dev/governor/apps/etcd"
)

// counted is a member that lists the members with these IDs, or has no quorum.
type counted struct {
	pb.UnimplementedClusterServer
	ids []uint64
}

func (c *counted) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if len(c.ids) == 0 {
		return nil, status.Error(codes.Unavailable, "etcdserver: no leader")
	}
	r := &pb.MemberListResponse{Header: &pb.ResponseHeader{ClusterId: 1}}
	for _, id := range c.ids {
		r.Members = append(r.Members, &pb.Member{ID: id})
	}
	return r, nil
}

// A member that was started with --force-new-cluster keeps its IDs, lists only itself, and
// answers like every other one. Governor then trusts neither list, whichever comes first.
func TestDividedMemberListsAreNotTrusted(t *testing.T) {
	all := []uint64{1, 2, 3}
	cases := map[string]struct {
		reason  string
		lists   [][]uint64 // of the members 1, 2, 3
		leaders []uint64
		divided bool
	}{
		"Forced":   {"two lists", [][]uint64{{1}, all, all}, []uint64{1, 2, 2}, true},
		"Election": {"a new leader, and one list", [][]uint64{all, all, all}, []uint64{1, 2, 2}, false},
		"Away":     {"a member without a quorum does not count", [][]uint64{{}, all, all}, []uint64{1, 2, 2}, false},
		"Whole":    {"one leader", [][]uint64{all, all, all}, []uint64{2, 2, 2}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			said := map[string]answer{}
			for i, list := range c.lists {
				a := answerOf(uint64(i+1), 1, c.leaders[i], etcd.Healthy)
				a.conn = serve(t, func(s *grpc.Server) { pb.RegisterClusterServer(s, &counted{ids: list}) })
				said[string(rune('a'+i))] = a
			}
			r := readMemberList(t.Context(), plain(""), 1, said, nil)
			if (r.divided != "") != c.divided || r.known() == c.divided {
				t.Errorf("%s: divided %q, the list is known: %v", c.reason, r.divided, r.known())
			}
		})
	}
}

// hesitant is a member that answers only after the others were asked.
type hesitant struct {
	counted
	others *sync.WaitGroup
}

func (h *hesitant) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	asked := make(chan struct{})
	go func() { defer close(asked); h.others.Wait() }()
	select {
	case <-asked:
		return h.counted.MemberList(ctx, r)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// prompt is a member that notes that it was asked.
type prompt struct {
	counted
	asked func()
}

func (p *prompt) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	p.asked()
	return p.counted.MemberList(ctx, r)
}

// A slow member does not hide that the others have different lists: all are asked at once.
func TestSlowMemberHidesNoDivision(t *testing.T) {
	var others sync.WaitGroup
	others.Add(2)
	servers := []pb.ClusterServer{
		&hesitant{counted{ids: []uint64{1, 2, 3}}, &others},
		&prompt{counted{ids: []uint64{2}}, sync.OnceFunc(others.Done)},
		&prompt{counted{ids: []uint64{1, 2, 3}}, sync.OnceFunc(others.Done)},
	}
	var voters []answer
	for i, server := range servers {
		a := answerOf(uint64(i+1), 1, uint64(2-i%2), etcd.Healthy)
		a.conn = serve(t, func(s *grpc.Server) { pb.RegisterClusterServer(s, server) })
		voters = append(voters, a)
	}
	if got, want := divided(t.Context(), voters), "1, 3 lists 1 2 3; 2 lists 2"; got != want {
		t.Errorf("the lists are %q, want %q", got, want)
	}
}
