package driver

import (
	"context"
	"errors"
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
	// answerWithin is how long a member may take to answer: a slow serving member is better
	// than a silent one.
	answerWithin = 3 * time.Second
	// startingWithin is the same for a member that is not ready in Kubernetes.
	startingWithin = time.Second
	// joiningWithin is how long a member that has not served yet may take to accept a
	// connection. After a snapshot it is ready seconds before it accepts one, and is queried in
	// every reconcile and before every step; its promotion must not wait for that. Later queries
	// only check the pending connection.
	joiningWithin = 200 * time.Millisecond

	clientPort = "2379"
)

// answer is the response of one member.
type answer struct {
	conn   *grpc.ClientConn
	health etcd.Health
	status *etcdserverpb.StatusResponse // nil if it does not answer
	// refused reports that it does not answer because of a certificate.
	refused bool
	// unauthorized reports that etcd's authentication denies the operator.
	unauthorized bool
}

// queryMembers queries all members concurrently at the addresses of their pods: DNS changes
// reach caches late. shared describes pods that answer as one member; their state is unknown.
func (d *Driver) queryMembers(ctx context.Context, want *etcdv1.EtcdCluster, p parts, k keys) (responses map[string]answer, shared string) {
	responses = queryAll(ctx, p.pods, func(ctx context.Context, name string, found *corev1.Pod) answer {
		if found.Status.PodIP == "" || k.missing || foreign(want, found) {
			return answer{}
		}
		state := pod.Of(found, etcd.Name)
		if state.Finished {
			return answer{}
		}
		u, err := url.Parse(etcd.ClientURL(want, name))
		if err != nil {
			return answer{}
		}
		p := limitsFor(found, state.Ready)
		a := d.query(ctx, string(want.UID)+"/"+name, net.JoinHostPort(found.Status.PodIP, clientPort), u.Hostname(), k, p)
		return a.withProbe(state.Ready && !state.Terminating)
	})
	return responses, setAsideShared(responses, func(name string) string { return p.pods[name].Status.PodIP })
}

// limits are the timeouts for a new connection, for one that is still pending, and for the
// answer.
type limits struct{ connect, again, answer time.Duration }

func upTo(t time.Duration) limits { return limits{t, t, t} }

func limitsFor(found *corev1.Pod, ready bool) limits {
	l := upTo(startingWithin)
	if ready {
		l = upTo(answerWithin)
	}
	if etcd.Exposure(found.Labels[etcd.LabelExposed]) == etcd.Hidden {
		l.connect, l.again = joiningWithin, 0
	}
	return l
}

// queryUnmanaged queries members that were added by hand at their published addresses, if a pod
// of the cluster's namespace has that address.
func (d *Driver) queryUnmanaged(ctx context.Context, want *etcdv1.EtcdCluster, k keys, r memberList, responses map[string]answer) {
	unmanaged := map[string]*url.URL{}
	for _, e := range r.entries {
		if e.unmanaged && len(e.ClientURLs) > 0 {
			if u, err := url.Parse(e.ClientURLs[0]); err == nil {
				unmanaged[e.name] = u
			}
		}
	}
	maps.Copy(responses, queryAll(ctx, unmanaged, func(ctx context.Context, name string, u *url.URL) answer {
		address, known := d.podAddress(ctx, want.Namespace, u)
		if !known {
			return answer{}
		}
		return d.query(ctx, string(want.UID)+"/"+name, address, u.Hostname(), k, upTo(startingWithin))
	}))
}

// queryAll queries all members concurrently.
func queryAll[T any](ctx context.Context, key map[string]T, queryMembers func(context.Context, string, T) answer) map[string]answer {
	var mu sync.Mutex
	var group sync.WaitGroup
	responses := map[string]answer{}
	for name, who := range key {
		group.Go(func() {
			a := queryMembers(ctx, name, who)
			mu.Lock()
			defer mu.Unlock()
			responses[name] = a
		})
	}
	group.Wait()
	return responses
}

// query uses the kept connection, or a new one. It drops a broken connection: waiting for its
// next attempt takes longer than a refusal. It keeps a pending one: etcd accepts it when it
// begins to serve.
func (d *Driver) query(ctx context.Context, key, address, name string, k keys, l limits) answer {
	conn, err := d.connections.get(key, address, name, k, d.now())
	if err != nil {
		return answer{}
	}
	switch connect(ctx, conn, l) {
	case connectivity.Ready:
		return queryStatus(ctx, conn, l.answer)
	case connectivity.TransientFailure, connectivity.Shutdown:
		d.connections.drop(key)
		return answer{refused: k.config != nil && handshake(ctx, address, name, k.config, l.answer) == refused}
	case connectivity.Idle, connectivity.Connecting:
	}
	return answer{}
}

// connect waits until the connection is established or has failed, and returns its state.
func connect(ctx context.Context, conn *grpc.ClientConn, l limits) connectivity.State {
	within := l.connect
	if conn.GetState() == connectivity.Connecting {
		within = l.again
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready, connectivity.TransientFailure, connectivity.Shutdown:
			return state
		case connectivity.Idle:
			conn.Connect()
		case connectivity.Connecting:
		}
		if !conn.WaitForStateChange(ctx, state) {
			return state
		}
	}
}

// queryStatus requests the status, and a linearizable read, which needs a quorum.
func queryStatus(ctx context.Context, conn *grpc.ClientConn, within time.Duration) answer {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s, err := etcdserverpb.NewMaintenanceClient(conn).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return answer{unauthorized: unauthorized(err)}
	}
	a := answer{conn: conn, status: s, health: etcd.Unhealthy}
	if s.IsLearner {
		if s.Leader != 0 {
			a.health = etcd.Healthy
		}
		return a
	}
	var served bool
	if served, a.unauthorized = readLinearizable(ctx, conn); served {
		a.health = etcd.Healthy
	}
	return a
}

// withProbe uses the kubelet's probe for a member that denies the operator its status: the probe
// is a linearizable read without authentication.
func (a answer) withProbe(ready bool) answer {
	if a.unauthorized && a.status == nil {
		a.health = etcd.Unhealthy
		if ready {
			a.health = etcd.Healthy
		}
	}
	return a
}

// unauthorized reports that etcd's authentication denies the request.
func unauthorized(err error) bool {
	rpcErr := rpctypes.Error(err)
	return slices.ContainsFunc([]error{
		rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthFailed,
	}, func(one error) bool { return errors.Is(rpcErr, one) })
}

// readLinearizable reports whether the member answers a linearizable read, and whether
// authentication denies it. etcd denies it after it has confirmed the quorum (etcdctl's endpoint
// health counts that as healthy too).
func readLinearizable(ctx context.Context, conn *grpc.ClientConn) (served, refused bool) {
	ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)
	_, err := etcdserverpb.NewKVClient(conn).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("health"), KeysOnly: true})
	switch status.Code(err) {
	case codes.OK:
		return true, false
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true, unauthorized(err)
	}
	return false, false
}

// otherClusterID is the cluster ID that members with a quorum report if it differs from the
// recorded one, e.g. after a snapshot was restored in place. It is 0 if there is none.
func otherClusterID(want *etcdv1.EtcdCluster, responses map[string]answer) uint64 {
	if want.Status.ClusterID == "" || clusterID(want, responses) != 0 {
		return 0
	}
	unknown := want.DeepCopy()
	unknown.Status.ClusterID = ""
	return clusterID(unknown, responses)
}

// clusterID is the recorded cluster ID, otherwise that of the members with a quorum.
func clusterID(want *etcdv1.EtcdCluster, responses map[string]answer) uint64 {
	remembered, err := strconv.ParseUint(want.Status.ClusterID, 16, 64)
	var found uint64
	for _, a := range responses {
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
		return 0 // only members of other clusters answer
	}
	return found
}
