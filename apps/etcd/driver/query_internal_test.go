package driver

import (
	"context"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/apps/etcd"
)

// The wait for a member that has not served yet is shorter. Once it has accepted the connection, it
// has the same time to answer.
func TestLimitsFor(t *testing.T) {
	cases := map[string]struct {
		exposed string
		ready   bool
		want    limits
	}{
		"Serving":             {"true", true, upTo(answerWithin)},
		"Starting":            {"true", false, upTo(startingWithin)},
		"Joining":             {"false", false, limits{joiningWithin, 0, startingWithin}},
		"JoiningReady":        {"false", true, limits{joiningWithin, 0, answerWithin}},
		"OfAnOlderOperator":   {"", true, upTo(answerWithin)},
		"OfAnOlderNotServing": {"", false, upTo(startingWithin)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{}
			p.Labels = map[string]string{etcd.LabelExposed: c.exposed}
			if got := limitsFor(p, c.ready); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// late answers as a learner that knows its leader.
type late struct {
	pb.UnimplementedMaintenanceServer
}

func (late) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 2}, IsLearner: true, Leader: 1}, nil
}

// etcd opens its port before it serves. A member that was queried too early answers on the same
// connection.
func TestQueryKeepsPendingConnection(t *testing.T) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &Driver{connections: newConnections(), now: time.Now}
	query := func(within, again time.Duration) answer {
		return d.query(t.Context(), "a", port.Addr().String(), "", keys{}, limits{within, again, time.Minute})
	}
	if a := query(time.Millisecond, time.Minute); a.health != etcd.Unknown {
		t.Fatalf("%s before it serves", a.health)
	}
	if a := query(time.Minute, 0); a.health != etcd.Unknown {
		t.Fatalf("%s before it serves, and waited for once more", a.health)
	}
	asked := d.connections.open["a"]
	if asked == nil {
		t.Fatal("the connection was given up")
	}
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, late{})
	go func() { _ = server.Serve(port) }()
	defer server.Stop()
	if a := query(time.Minute, time.Minute); a.health != etcd.Healthy || a.conn != asked.ClientConn {
		t.Errorf("%q, by the same connection: %t", a.health, a.conn == asked.ClientConn)
	}
}

// A connection that was refused is not kept.
func TestQueryDropsBrokenConnection(t *testing.T) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = port.Close()
	d := &Driver{connections: newConnections(), now: time.Now}
	if a := d.query(t.Context(), "a", port.Addr().String(), "", keys{}, upTo(time.Minute)); a.health != etcd.Unknown {
		t.Errorf("%s, without a member", a.health)
	}
	if len(d.connections.open) > 0 {
		t.Error("the connection is kept")
	}
}
