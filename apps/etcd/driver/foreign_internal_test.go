package driver

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/governor-dev/governor/apps/etcd"
)

// published is a server whose cluster lists one member with this client URL.
type published struct {
	pb.UnimplementedClusterServer
	id  uint64
	url string
}

func (p published) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Members: []*pb.Member{{ID: p.id, ClientURLs: []string{p.url}}}}, nil
}

// After a restart of a node, an etcd of another cluster may have the address that the API server still shows for the member.
// One answer at an address is no proof: the process must know itself as this member.
func TestAnAnswerAtAnOldAddressIsNotForeign(t *testing.T) {
	want := plain("")
	own := etcd.ClientURL(want, "my-etcd-1")
	for name, c := range map[string]struct {
		server published
		want   bool
	}{
		"Itself":      {published{id: 1, url: own}, true},
		"Another":     {published{id: 1, url: "http://other-1.other.ns.svc:2379"}, false},
		"AnotherOfIt": {published{id: 2, url: own}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := answerOf(1, 8, 0, etcd.Healthy)
			a.conn = serve(t, func(s *grpc.Server) { pb.RegisterClusterServer(s, c.server) })
			r := memberList{cluster: 7, source: a}
			if got := foreignMembers(t.Context(), want, r, map[string]answer{"my-etcd-1": a})["my-etcd-1"]; got != c.want {
				t.Errorf("foreign: %t", got)
			}
		})
	}
}
