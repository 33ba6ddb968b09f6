package driver

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// leading answers as the leader, with an alarm once it is full.
type leading struct {
	pb.UnimplementedMaintenanceServer
	full atomic.Bool
}

func (l *leading) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	s := &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 1}, Leader: 1}
	if l.full.Load() {
		s.Errors = []string{"memberID:1 alarm:NOSPACE"}
	}
	return s, nil
}

func TestSentinelDetectsChangedAnswer(t *testing.T) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	leader, server := &leading{}, grpc.NewServer()
	pb.RegisterMaintenanceServer(server, leader)
	go func() { _ = server.Serve(port) }()
	defer server.Stop()
	conn, err := grpc.NewClient("passthrough:///"+port.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p := watch{conn: conn, leader: 1}
	if !p.unchanged(t.Context()) {
		t.Error("nothing has changed")
	}
	if (watch{conn: conn, leader: 2}).unchanged(t.Context()) {
		t.Error("another member leads")
	}
	leader.full.Store(true)
	if p.unchanged(t.Context()) {
		t.Error("it has raised an alarm")
	}
	server.Stop()
	if p.unchanged(t.Context()) {
		t.Error("it does not answer")
	}
}

func TestSentinelQueriesEachLeaderPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want, s := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}}, newSentinel()
		s.record(want, []answer{{status: &pb.StatusResponse{Leader: 1}}}, time.Now())
		if due := s.dueBy(time.Now()); len(due) != 0 {
			t.Errorf("a reconcile has just queried, and %v are due", due)
		}
		time.Sleep(guardInterval)
		if due := s.dueBy(time.Now()); len(due) != 1 {
			t.Errorf("after %s %v are due", guardInterval, due)
		}
		if due := s.dueBy(time.Now()); len(due) != 0 {
			t.Errorf("%v are due twice", due)
		}
		s.record(want, nil, time.Now())
		if len(s.watches) > 0 {
			t.Error("a cluster without a leader is kept")
		}
	})
}
