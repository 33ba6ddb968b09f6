package consistencyclient_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"

	"github.com/governor-dev/governor/test/consistencyclient"
)

// member is an in-memory etcd member that can fail.
type member struct {
	pb.UnimplementedKVServer

	mu       sync.Mutex
	revision int64
	kvs      map[string]*mvccpb.KeyValue
	broken   bool
}

func (m *member) Put(_ context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		return nil, errors.New("broken")
	}
	m.revision++
	m.kvs[string(r.Key)] = &mvccpb.KeyValue{Key: r.Key, Value: r.Value, ModRevision: m.revision}
	return &pb.PutResponse{Header: &pb.ResponseHeader{ClusterId: 7, Revision: m.revision}}, nil
}

// Range returns at most three keys.
func (m *member) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.kvs {
		if name >= string(r.Key) && name < string(r.RangeEnd) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	response := &pb.RangeResponse{More: len(names) > 3}
	for _, name := range names[:min(3, len(names))] {
		response.Kvs = append(response.Kvs, m.kvs[name])
	}
	return response, nil
}

func (m *member) set(broken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = broken
}

// listen serves the member until the test ends.
func listen(t *testing.T, m *member) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterKVServer(s, m)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func start(t *testing.T, m *member, connections int, addresses ...string) *consistencyclient.Client {
	t.Helper()
	addresses = append(addresses, listen(t, m))
	w := consistencyclient.Start(t.Context(), consistencyclient.Options{
		Find:     func(context.Context) ([]string, error) { return addresses, nil },
		Interval: time.Millisecond, Timeout: 2 * time.Second, Connections: connections,
	})
	t.Cleanup(w.Stop)
	return w
}

// await waits until the tally satisfies is.
func await(t *testing.T, w *consistencyclient.Client, is func(consistencyclient.Stats) bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); ; {
		if is(w.Stats()) {
			return
		}
		select {
		case <-end:
			t.Fatalf("not within 20 s; the tally is %s", w.Stats())
		case <-tick.C:
		}
	}
}

func acknowledged(n int) func(consistencyclient.Stats) bool {
	return func(t consistencyclient.Stats) bool { return t.Acknowledged >= n }
}

func TestPresentKeysAreNotLost(t *testing.T) {
	m := &member{kvs: map[string]*mvccpb.KeyValue{}}
	w := start(t, m, 4, "127.0.0.1:1") // no member listens at this address
	await(t, w, acknowledged(20))
	w.Stop()
	if lost, err := w.Lost(t.Context()); err != nil || len(lost) > 0 {
		t.Errorf("lost %v, %v", lost, err)
	}
	if ids := w.Stats().Clusters; !slices.Equal(ids, []uint64{7}) {
		t.Errorf("clusters are %v", ids)
	}
}

func TestMissingOrRewrittenKeysAreLost(t *testing.T) {
	m := &member{kvs: map[string]*mvccpb.KeyValue{}}
	w := start(t, m, 1) // no write is in flight when ten are acknowledged
	await(t, w, acknowledged(10))
	w.Stop()
	m.mu.Lock()
	delete(m.kvs, "witness/00000002")
	m.kvs["witness/00000005"].ModRevision += 100
	m.mu.Unlock()
	lost, err := w.Lost(t.Context())
	if err != nil || len(lost) != 2 || lost[0] != "witness/00000002" && lost[1] != "witness/00000002" {
		t.Errorf("lost %v, %v, want two", lost, err)
	}
	if !strings.Contains(strings.Join(lost, " "), "00000005 (acknowledged as") {
		t.Errorf("got %v, want the key with another revision", lost)
	}
}

func TestLongestGap(t *testing.T) {
	m := &member{kvs: map[string]*mvccpb.KeyValue{}}
	w := start(t, m, 4)
	await(t, w, acknowledged(10))
	m.set(true)
	await(t, w, func(t consistencyclient.Stats) bool { return t.SinceLastAck > time.Second && t.Failed > 0 })
	m.set(false)
	before := w.Stats().Acknowledged
	await(t, w, acknowledged(before+10))
	recovered := time.Now()
	await(t, w, acknowledged(w.Stats().Acknowledged+10))
	w.Stop()
	longest := w.Stats().LongestGap
	if longest < time.Second {
		t.Errorf("the longest gap is %s", longest)
	}
	if gap := w.LongestGap(recovered); gap >= longest {
		t.Errorf("after the recovery the longest gap is %s", gap)
	}
}

func TestLostFailsIfNoMemberIsReachable(t *testing.T) {
	w := consistencyclient.Start(t.Context(), consistencyclient.Options{Find: func(context.Context) ([]string, error) { return nil, nil }})
	w.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if lost, err := w.Lost(ctx); err == nil {
		t.Errorf("lost %v, want an error: no member is reachable", lost)
	}
}
