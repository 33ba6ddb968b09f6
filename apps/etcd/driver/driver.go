// Package driver observes real etcd clusters and takes the planner's steps.
package driver

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// Driver is etcd's contact with the world. It keeps a connection to each member, and
// remembers since when each is as it is.
type Driver struct {
	client client.Client
	live   client.Reader
	now    func() time.Time

	connections *connections
	sentinel    *sentinel
	healthTimes *healthTimes
	tlsCache    *tlsCache
	nodes       *nodes
	places      *places
	edits       *edits
	comparer    *apply.Comparer
}

// New returns a driver that reads Kubernetes through the clients: StatefulSets,
// pods, volumes, doors and minted Secrets from the cache; StorageClasses, nodes and users'
// own Secrets live.
func New(cached client.Client, live client.Reader) lifecycle.Driver[*etcdv1.EtcdCluster, etcd.World] {
	return &Driver{client: cached, live: live, now: time.Now, connections: newConnections(), sentinel: newSentinel(), healthTimes: newHealthTimes(), tlsCache: newTLSCache(),
		nodes: newNodes(), places: &places{}, edits: newEdits(), comparer: apply.NewComparer(cached.Scheme())}
}

// Observe implements lifecycle.Driver.
func (d *Driver) Observe(ctx context.Context, want *etcdv1.EtcdCluster) (etcd.World, error) {
	v, err := d.look(ctx, want)
	return v.world, err
}

// view is the world with the means to act on it.
type view struct {
	world etcd.World
	parts parts
	// speakers are the voters that have a quorum behind them, the leader first.
	speakers []answer
	// user is who the operator is to etcd, by its certificate.
	user string
}

func (d *Driver) look(ctx context.Context, want *etcdv1.EtcdCluster) (view, error) {
	p, err := d.gather(ctx, want)
	if err != nil {
		return view{}, err
	}
	if want.DeletionTimestamp != nil {
		d.sentinel.station(want, nil, d.now())
		// etcd may be down, and does not matter any more.
		return view{world: etcd.World{Leaving: true, Members: d.members(want, p, memberList{}, nil)}, parts: p}, nil
	}
	keys, err := d.keys(ctx, want)
	if err != nil {
		return view{}, err
	}
	said := d.ask(ctx, want, p, keys)
	r := call(ctx, want, identity(want, said), said, candidates(want, p, nil))
	d.askStrangers(ctx, want, keys, r, said)
	if err := d.findListed(ctx, want, p, r); err != nil {
		return view{}, err
	}
	v := view{parts: p, speakers: quorumMembers(r.cluster, said), world: etcd.World{
		Orphans: p.orphans, Earlier: p.earlier, Divided: r.divided, OtherID: otherIdentity(want, said), Listed: r.known(), ClusterID: r.cluster, LegacyKeys: keys.legacy, Certificates: keys.problem, Trust: keys.trust,
		Revocation: keys.revocation, Bundles: keys.bundles,
		Members: d.members(want, p, r, said),
	}}
	v.world.Unauthorized, v.user = refusedAny(said), keys.user()
	if v.world.Unauthorized {
		v.world.User = v.user
	}
	d.sentinel.station(want, v.speakers, d.now())
	readLogs(want, p, said, v.world.Members)
	d.settle(ctx, p, v.world.Members)
	findUnreachable(ctx, p, v.world.Members)
	d.findPlaces(ctx, want, &v.world)
	d.askPeerPorts(ctx, want, p, keys, v.world.Members)
	d.askCertificates(ctx, want, p, keys, v.world.Members)
	if err := d.findObstacles(ctx, want, p, v.world.Members); err != nil {
		return view{}, err
	}
	if err := d.findEdits(want, v); err != nil {
		return view{}, err
	}
	d.refusedPods(ctx, p, v.world.Members)
	return v, d.storage(ctx, want, p, v.world.Members)
}
