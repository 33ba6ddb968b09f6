package driver

import (
	"context"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/pod"
)

const (
	// answerWithin is how long a member may take to answer; one that serves and is
	// slow is still better than one that is silent.
	answerWithin = 3 * time.Second
	// startingWithin is the same for a member that Kubernetes does not call ready, and
	// for a learner: after a snapshot it is ready before it serves, and is waited for in
	// every turn, and before every step.
	startingWithin = time.Second

	clientPort = "2379"
)

// answer is what one member says.
type answer struct {
	line   *grpc.ClientConn
	health etcd.Health
	status *etcdserverpb.StatusResponse // nil if it does not answer
}

// ask asks all members at once, at their pods' addresses: names take a while to
// reach every DNS cache.
func (d *Driver) ask(ctx context.Context, want *etcdv1.EtcdCluster, p parts, k keys) map[string]answer {
	return all(ctx, p.pods, func(ctx context.Context, name string, found *corev1.Pod) answer {
		if found.Status.PodIP == "" || k.missing {
			return answer{}
		}
		state := pod.Of(found, etcd.Name)
		if state.Ended {
			return answer{}
		}
		u, err := url.Parse(etcd.ClientURL(want, name))
		if err != nil {
			return answer{}
		}
		return d.reach(ctx, string(want.UID)+"/"+name, net.JoinHostPort(found.Status.PodIP, clientPort), u.Hostname(), k, state.Ready && !joins(want, name))
	})
}

// joins says that the member was a learner when it was last seen.
func joins(want *etcdv1.EtcdCluster, name string) bool {
	return slices.ContainsFunc(want.Status.Members, func(m etcdv1.MemberStatus) bool {
		return m.Name == name && m.Role == string(etcd.Learner)
	})
}

// askStrangers asks who was added by hand, at the address that it has published.
func (d *Driver) askStrangers(ctx context.Context, want *etcdv1.EtcdCluster, k keys, r roll, said map[string]answer) {
	strangers := map[string]*url.URL{}
	for _, e := range r.entries {
		if e.stranger && len(e.ClientURLs) > 0 {
			if u, err := url.Parse(e.ClientURLs[0]); err == nil {
				strangers[e.name] = u
			}
		}
	}
	maps.Copy(said, all(ctx, strangers, func(ctx context.Context, name string, u *url.URL) answer {
		return d.reach(ctx, string(want.UID)+"/"+name, u.Host, u.Hostname(), k, false)
	}))
}

// all asks each at the same time.
func all[T any](ctx context.Context, whom map[string]T, ask func(context.Context, string, T) answer) map[string]answer {
	var mu sync.Mutex
	var group sync.WaitGroup
	said := map[string]answer{}
	for name, who := range whom {
		group.Go(func() {
			a := ask(ctx, name, who)
			mu.Lock()
			defer mu.Unlock()
			said[name] = a
		})
	}
	group.Wait()
	return said
}

// reach asks over the kept connection, or a new one. One that broke is not kept: to
// wait until it tries again would take longer than a refusal.
func (d *Driver) reach(ctx context.Context, whom, address, name string, k keys, ready bool) answer {
	limit := startingWithin
	if ready {
		limit = answerWithin
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	line, err := d.lines.to(whom, address, name, k, d.now())
	if err != nil {
		return answer{}
	}
	if !connected(ctx, line) {
		d.lines.drop(whom)
		return answer{}
	}
	return inquire(ctx, line)
}

func connected(ctx context.Context, line *grpc.ClientConn) bool {
	for {
		state := line.GetState()
		switch state {
		case connectivity.Ready:
			return true
		case connectivity.TransientFailure, connectivity.Shutdown:
			return false
		case connectivity.Idle:
			line.Connect()
		case connectivity.Connecting:
		}
		if !line.WaitForStateChange(ctx, state) {
			return false
		}
	}
}

// inquire asks for the status, and for a linearizable read, which needs a quorum.
func inquire(ctx context.Context, line *grpc.ClientConn) answer {
	s, err := etcdserverpb.NewMaintenanceClient(line).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return answer{}
	}
	a := answer{line: line, status: s, health: etcd.Unhealthy}
	if s.IsLearner && s.Leader != 0 || !s.IsLearner && reads(ctx, line) {
		a.health = etcd.Healthy
	}
	return a
}

// reads says that the member answers a linearizable read. Where users must log in,
// the refusal comes after the quorum was asked (etcdctl's endpoint health counts it
// as healthy too).
func reads(ctx context.Context, line *grpc.ClientConn) bool {
	ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)
	_, err := etcdserverpb.NewKVClient(line).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("health"), KeysOnly: true})
	switch status.Code(err) {
	case codes.OK, codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true
	}
	return false
}

// identity is the cluster's ID: the one that is remembered, else the one of those
// who have a quorum.
func identity(want *etcdv1.EtcdCluster, said map[string]answer) uint64 {
	remembered, err := strconv.ParseUint(want.Status.ClusterID, 16, 64)
	var found uint64
	for _, a := range said {
		if a.status == nil {
			continue
		}
		id := a.status.Header.GetClusterId()
		if err == nil && id == remembered {
			return id
		}
		if a.health == etcd.Healthy {
			found = max(found, id)
		}
	}
	if err == nil {
		return 0 // others may answer, but not this cluster
	}
	return found
}
