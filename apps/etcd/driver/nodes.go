package driver

import (
	"cmp"
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// nodeFresh is the maximum age of a cached node while its members are healthy, when only
	// its zone matters. nodeInDoubt applies if one is not.
	nodeFresh    = 15 * time.Minute
	nodeInDoubt  = 10 * time.Second
	selectedNode = "volume.kubernetes.io/selected-node"
)

// nodes caches the relevant fields of each node. Nodes are read one by one and not watched: a
// watch would deliver every heartbeat of every node.
type nodes struct {
	mu    sync.Mutex
	known map[string]node
}

type node struct {
	zone     string
	labels   map[string]string // nil if it could not be read
	cordoned bool
	down     string // why its pods cannot answer; empty if they can
	read     time.Time
}

func newNodes() *nodes { return &nodes{known: map[string]node{}} }

func (n *nodes) get(name string) node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[name]
}

func (n *nodes) put(name string, as node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other, known := range n.known {
		if as.read.Sub(known.read) > 2*nodeFresh {
			delete(n.known, other) // no member runs there any longer
		}
	}
	n.known[name] = as
}

// findNodes adds the members' nodes and zones, and whether a node is in maintenance.
func (d *Driver) findNodes(ctx context.Context, want *etcdv1.EtcdCluster, p parts, members []etcd.Member) {
	for i := range members {
		m := &members[i]
		name := m.Pod.Node
		if claim := p.claims[m.Name]; name == "" && claim != nil {
			name = claim.Annotations[selectedNode]
		}
		if name == "" {
			continue
		}
		maxAge := nodeFresh
		if m.Health != etcd.Healthy {
			maxAge = nodeInDoubt
		}
		seen := d.node(ctx, name, maxAge)
		m.Pod.Zone = seen.zone
		if m.Health == etcd.Healthy {
			continue
		}
		if m.Health == etcd.Unknown && m.Pod.Node != "" {
			m.Silence = seen.down
		}
		m.MaintenanceBy = lifecycle.MaintenanceBy(ctx, name, seen.labels)
		if seen.cordoned || m.MaintenanceBy != "" {
			m.Maintenance = name
		} else {
			m.Returned = maintenanceEnd(want, m.Name, d.now())
		}
	}
}

// maintenanceEnd is when the maintenance that the status records for the member was observed to
// be over; zero if it records none. The status keeps it because another operator may lead
// between that time and the member's answer.
func maintenanceEnd(want *etcdv1.EtcdCluster, name string, now time.Time) time.Time {
	last := etcd.Remembered(want, name).Maintenance
	switch {
	case last == nil:
		return time.Time{}
	case last.Ended != nil:
		return last.Ended.Time
	}
	return now.Truncate(time.Second) // the API stores seconds
}

// node reads the node if the cached one is too old. A deleted node has no zone and is not
// cordoned. If the read fails otherwise, the last known zone and cordon stay for nodeInDoubt, but
// not that the node was down.
func (d *Driver) node(ctx context.Context, name string, maxAge time.Duration) node {
	known, now := d.nodes.get(name), d.now()
	if now.Sub(known.read) < maxAge {
		return known
	}
	var found corev1.Node
	seen := node{read: now}
	err := d.live.Get(ctx, client.ObjectKey{Name: name}, &found)
	switch {
	case apierrors.IsNotFound(err):
		seen.down = "the node " + name + " no longer exists"
	case err != nil:
		seen = known
		seen.down, seen.read = "", now.Add(nodeInDoubt-maxAge)
	default:
		seen.down = downSince(&found)
		seen.cordoned, seen.labels = found.Spec.Unschedulable, labels.Merge(nil, found.Labels)
		seen.zone = zoneOf(&found)
	}
	d.nodes.put(name, seen)
	return seen
}

func zoneOf(n *corev1.Node) string {
	return cmp.Or(n.Labels[corev1.LabelTopologyZone], n.Labels[corev1.LabelFailureDomainBetaZone])
}

// downSince describes since when the node is not ready; empty if it is.
func downSince(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "the node " + n.Name + " is NotReady since " + c.LastTransitionTime.UTC().Format("15:04 MST")
		}
	}
	return ""
}
