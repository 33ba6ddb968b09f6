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
	// answerWithin is how long a member may take to answer; one that serves and is
	// slow is still better than one that is silent.
	answerWithin = 3 * time.Second
	// startingWithin is the same for a member that Kubernetes does not call ready.
	startingWithin = time.Second
	// joiningWithin is how long one that has not served yet may take to take up a
	// connection. After a snapshot it is ready seconds before it does, and is asked in
	// every turn, and before every step: the vote that it is to get shall not wait for that.
	// So one that has not taken it up by then is not waited for again, only looked at.
	joiningWithin = 200 * time.Millisecond

	clientPort = "2379"
)

// answer is what one member says.
type answer struct {
	line   *grpc.ClientConn
	health etcd.Health
	status *etcdserverpb.StatusResponse // nil if it does not answer
	// refused says that certificates are why it does not.
	refused bool
	// unauthorized says that etcd's authentication refuses the operator.
	unauthorized bool
}

// ask asks all members at once, at their pods' addresses: names take a while to
// reach every DNS cache.
func (d *Driver) ask(ctx context.Context, want *etcdv1.EtcdCluster, p parts, k keys) map[string]answer {
	return all(ctx, p.pods, func(ctx context.Context, name string, found *corev1.Pod) answer {
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
		p := patience(found, state.Ready)
		a := d.reach(ctx, string(want.UID)+"/"+name, net.JoinHostPort(found.Status.PodIP, clientPort), u.Hostname(), k, p)
		return a.probed(state.Ready && !state.Terminating)
	})
}

// limits are how long a member may take to take up a new connection, or one that it was
// offered before, and then to answer.
type limits struct{ connect, again, answer time.Duration }

func upTo(t time.Duration) limits { return limits{t, t, t} }

func patience(found *corev1.Pod, ready bool) limits {
	l := upTo(startingWithin)
	if ready {
		l = upTo(answerWithin)
	}
	if etcd.Exposure(found.Labels[etcd.LabelExposed]) == etcd.Hidden {
		l.connect, l.again = joiningWithin, 0
	}
	return l
}

// askStrangers asks who was added by hand, at the address that it has published, if a
// pod of the cluster's own namespace has it.
func (d *Driver) askStrangers(ctx context.Context, want *etcdv1.EtcdCluster, k keys, r memberList, said map[string]answer) {
	strangers := map[string]*url.URL{}
	for _, e := range r.entries {
		if e.stranger && len(e.ClientURLs) > 0 {
			if u, err := url.Parse(e.ClientURLs[0]); err == nil {
				strangers[e.name] = u
			}
		}
	}
	maps.Copy(said, all(ctx, strangers, func(ctx context.Context, name string, u *url.URL) answer {
		address, known := d.podAddress(ctx, want.Namespace, u)
		if !known {
			return answer{}
		}
		return d.reach(ctx, string(want.UID)+"/"+name, address, u.Hostname(), k, upTo(startingWithin))
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
// wait until it tries again would take longer than a refusal. One that has not come
// about yet is: etcd takes it up when it begins to serve.
func (d *Driver) reach(ctx context.Context, whom, address, name string, k keys, l limits) answer {
	line, err := d.connections.to(whom, address, name, k, d.now())
	if err != nil {
		return answer{}
	}
	switch connect(ctx, line, l) {
	case connectivity.Ready:
		return inquire(ctx, line, l.answer)
	case connectivity.TransientFailure, connectivity.Shutdown:
		d.connections.drop(whom)
		return answer{refused: k.config != nil && shake(ctx, address, name, k.config, l.answer) == refused}
	case connectivity.Idle, connectivity.Connecting:
	}
	return answer{}
}

// connect waits until the connection has come about or failed, and says how it is then.
func connect(ctx context.Context, line *grpc.ClientConn, l limits) connectivity.State {
	within := l.connect
	if line.GetState() == connectivity.Connecting {
		within = l.again
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		state := line.GetState()
		switch state {
		case connectivity.Ready, connectivity.TransientFailure, connectivity.Shutdown:
			return state
		case connectivity.Idle:
			line.Connect()
		case connectivity.Connecting:
		}
		if !line.WaitForStateChange(ctx, state) {
			return state
		}
	}
}

// inquire asks for the status, and for a linearizable read, which needs a quorum.
func inquire(ctx context.Context, line *grpc.ClientConn, within time.Duration) answer {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s, err := etcdserverpb.NewMaintenanceClient(line).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return answer{unauthorized: unauthorized(err)}
	}
	a := answer{line: line, status: s, health: etcd.Unhealthy}
	if s.IsLearner {
		if s.Leader != 0 {
			a.health = etcd.Healthy
		}
		return a
	}
	var served bool
	if served, a.unauthorized = reads(ctx, line); served {
		a.health = etcd.Healthy
	}
	return a
}

// probed adds the kubelet's word on a member that tells the operator nothing: its probe is a
// linearizable read without authentication.
func (a answer) probed(ready bool) answer {
	if a.unauthorized && a.status == nil {
		a.health = etcd.Unhealthy
		if ready {
			a.health = etcd.Healthy
		}
	}
	return a
}

// unauthorized says that etcd's authentication refuses the request.
func unauthorized(err error) bool {
	said := rpctypes.Error(err)
	return slices.ContainsFunc([]error{
		rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthFailed,
	}, func(one error) bool { return errors.Is(said, one) })
}

// reads says that the member answers a linearizable read, and whether authentication refuses
// it. The refusal comes after the quorum was asked (etcdctl's endpoint health counts it
// as healthy too).
func reads(ctx context.Context, line *grpc.ClientConn) (served, refused bool) {
	ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)
	_, err := etcdserverpb.NewKVClient(line).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("health"), KeysOnly: true})
	switch status.Code(err) {
	case codes.OK:
		return true, false
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true, unauthorized(err)
	}
	return false, false
}

// otherIdentity is the ID that members with a quorum answer with although another one is
// remembered, e.g. after a snapshot was restored in place; 0 if there is none.
func otherIdentity(want *etcdv1.EtcdCluster, said map[string]answer) uint64 {
	if want.Status.ClusterID == "" || identity(want, said) != 0 {
		return 0
	}
	unknown := want.DeepCopy()
	unknown.Status.ClusterID = ""
	return identity(unknown, said)
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
