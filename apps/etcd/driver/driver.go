// Package driver observes real etcd clusters and performs the planner's steps.
package driver

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/dryrun"
	"github.com/governor-dev/governor/lifecycle"
)

// Driver implements lifecycle.Driver for etcd. It keeps a connection to each member, and the
// time since each member's health is unchanged.
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
	templates   *dryrun.Templates

	refusedTrials   *refusedTrials
	networkPolicies networkPolicies
	mounts          mounts
}

// New returns a driver that reads Kubernetes through the clients. StatefulSets, pods, volumes,
// bootstrap ConfigMaps and issued Secrets come from the cache; StorageClasses, nodes and the
// users' own Secrets from the API server.
func New(a kube.Access) lifecycle.Driver[*etcdv1.EtcdCluster, etcd.World] {
	return &Driver{client: a.Client, live: a.Live, now: a.Now, connections: newConnections(), sentinel: newSentinel(), healthTimes: newHealthTimes(), tlsCache: newTLSCache(),
		nodes: newNodes(), places: &places{}, edits: newEdits(), comparer: apply.NewComparer(a.Client.Scheme()), templates: dryrun.New(a.Now), refusedTrials: newRefusedTrials()}
}

// Close implements io.Closer: it ends all connections to members.
func (d *Driver) Close() error {
	d.connections.close()
	return nil
}

// Observe implements lifecycle.Driver.
func (d *Driver) Observe(ctx context.Context, want *etcdv1.EtcdCluster) (etcd.World, error) {
	v, err := d.observe(ctx, want)
	return v.world, err
}

// view is the world with the means to act on it.
type view struct {
	world etcd.World
	parts parts
	// quorumMembers are the voters that have a quorum, the leader first.
	quorumMembers []answer
	// user is the operator's user name in etcd, from its certificate.
	user string
}

func (d *Driver) observe(ctx context.Context, want *etcdv1.EtcdCluster) (view, error) {
	p, err := d.gather(ctx, want)
	if err != nil {
		return view{}, err
	}
	if want.DeletionTimestamp != nil {
		// etcd may be down, and is no longer needed. A policy may hold the deletion, or it is only
		// a preview: this observation leaves no trace.
		return view{world: etcd.World{Members: members(want, p, memberList{}, nil)}, parts: p}, nil
	}
	keys, err := d.keys(ctx, want)
	if err != nil {
		return view{}, err
	}
	responses, shared := d.queryMembers(ctx, want, p, keys)
	r := readMemberList(ctx, want, clusterID(want, responses), responses, candidates(want, p, nil))
	r.foreign = foreignMembers(ctx, want, r, responses)
	d.queryUnmanaged(ctx, want, keys, r, responses)
	if err := d.findListed(ctx, want, p, r); err != nil {
		return view{}, err
	}
	v := view{quorumMembers: quorumMembers(r.cluster, responses), world: etcd.World{
		Orphans: p.orphans, Earlier: p.earlier, Divided: r.divided, Shared: shared, OtherID: otherClusterID(want, responses), Listed: r.known(), ClusterID: r.cluster, LegacyKeys: keys.legacy, UnknownKeys: keys.unknown, Certificates: keys.problem, Trust: keys.trust,
		NetworkPolicy: d.networkPolicies.of(want),
		OldVolumes:    p.oldVolumes,
		Initial:       etcd.InitialMembersOf(p.initialClusters()),
		Revocation:    keys.revocation, Bundles: keys.bundles, LeftAlarms: r.leftAlarms(),
		Members: members(want, p, r, responses),
	}}
	if err := d.findEarlierClaims(ctx, want, p, v.world); err != nil {
		return view{}, err
	}
	setAsideForeignClaims(want, &p, v.world)
	v.parts = p
	d.healthTimes.record(want, v.world.Members, keys.problem == "", d.now())
	v.world.Unauthorized, v.user = refusedAny(responses), keys.user()
	if v.world.Unauthorized {
		v.world.User = v.user
	}
	d.sentinel.record(want, v.quorumMembers, d.now())
	readLogs(want, p, responses, v.world.Members)
	d.findNodes(ctx, want, p, v.world.Members)
	d.findLostNodes(ctx, p, v.world.Members)
	findUnreachable(ctx, p, v.world.Members)
	d.findPlaces(ctx, want, &v.world)
	d.checkPeerPorts(ctx, want, p, keys, v.world.Members)
	d.checkCertificates(ctx, want, p, keys, v.world.Members)
	if err := d.findObstacles(ctx, want, p, v.world.Members); err != nil {
		return view{}, err
	}
	d.findRefusedPods(ctx, p, v.world.Members)
	if err := d.findEdits(ctx, want, v); err != nil {
		return view{}, err
	}
	err = d.storage(ctx, want, p, v.world.Members)
	v.world.Trial = d.findMovable(ctx, p, d.trial(want, p.trial))
	v.world.Template = d.tryTemplate(ctx, want, v.world)
	return v, err
}
