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

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// nodeFresh is how long a node is believed to be as it was while its members are
	// healthy: only its zone matters then. With one that is not, it is read more often.
	nodeFresh    = 15 * time.Minute
	nodeInDoubt  = 10 * time.Second
	selectedNode = "volume.kubernetes.io/selected-node"
)

// nodes remember what matters of each node. They are read one by one and not watched: a
// watch would bring every heartbeat of every node.
type nodes struct {
	mu    sync.Mutex
	known map[string]node
}

type node struct {
	zone     string
	labels   map[string]string // nil if it could not be read
	cordoned bool
	down     string    // why its pods cannot answer; empty if they can
	returned time.Time // when it was found uncordoned
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
			delete(n.known, other) // nothing runs there any more
		}
	}
	n.known[name] = as
}

// settle adds where members are, and whether that node is in maintenance.
func (d *Driver) settle(ctx context.Context, p parts, members []etcd.Member) {
	for i := range members {
		m := &members[i]
		name := m.Pod.Node
		if claim := p.claims[m.Name]; name == "" && claim != nil {
			name = claim.Annotations[selectedNode]
		}
		if name == "" {
			continue
		}
		fresh := nodeFresh
		if m.Health != etcd.Healthy {
			fresh = nodeInDoubt
		}
		seen := d.node(ctx, name, fresh)
		m.Pod.Zone = seen.zone
		if m.Health == etcd.Healthy {
			continue
		}
		if m.Health == etcd.Unknown && m.Pod.Node != "" {
			m.Silence = seen.down
		}
		m.Returned, m.MaintenanceBy = seen.returned, lifecycle.MaintenanceBy(ctx, name, seen.labels)
		if seen.cordoned || m.MaintenanceBy != "" {
			m.Maintenance = name
		}
	}
}

// node reads the node if what is known of it is too old. One that cannot be read, for
// want of a right or because it is gone, is in no zone and not cordoned.
func (d *Driver) node(ctx context.Context, name string, fresh time.Duration) node {
	known, now := d.nodes.get(name), d.now()
	if now.Sub(known.read) < fresh {
		return known
	}
	var found corev1.Node
	seen := node{read: now, returned: known.returned}
	err := d.live.Get(ctx, client.ObjectKey{Name: name}, &found)
	if apierrors.IsNotFound(err) {
		seen.down = "the node " + name + " does not exist any more"
	}
	if err == nil {
		seen.down = downSince(&found)
		seen.cordoned, seen.labels = found.Spec.Unschedulable, labels.Merge(nil, found.Labels)
		seen.zone = zoneOf(&found)
	}
	if known.cordoned && !seen.cordoned {
		seen.returned = now
	}
	d.nodes.put(name, seen)
	return seen
}

func zoneOf(n *corev1.Node) string {
	return cmp.Or(n.Labels[corev1.LabelTopologyZone], n.Labels[corev1.LabelFailureDomainBetaZone])
}

// downSince says since when the node is not ready; empty if it is.
func downSince(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "the node " + n.Name + " is NotReady since " + c.LastTransitionTime.UTC().Format("15:04 MST")
		}
	}
	return ""
}
