package e2e_test

import (
	"fmt"
	"net"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// full is how many entries a log must have for who joins to need a snapshot when etcd
	// writes one every 100: it keeps the last 5,000.
	full = 5300
	// hands that write at once.
	hands = 32
)

// Fill implements contract.System.
func (c *cluster) Fill(t *testing.T) {
	t.Helper()
	address := net.JoinHostPort(c.pod(t, c.get(t).Status.Leader).Status.PodIP, "2379")
	line, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	var all sync.WaitGroup
	errs := make([]error, hands)
	for hand := range hands {
		all.Go(func() {
			for n := hand; n < full && errs[hand] == nil; n += hands {
				_, errs[hand] = pb.NewKVClient(line).Put(t.Context(), &pb.PutRequest{Key: fmt.Appendf(nil, "fill/%d", n)})
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
