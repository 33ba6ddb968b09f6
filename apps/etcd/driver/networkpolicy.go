package driver

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// networkPolicies are the spec.networkPolicy of steps that were taken, by cluster, until the status has
// them. After a restart of the operator in between, the step is decided again.
type networkPolicies struct {
	mu    sync.Mutex
	taken map[types.UID]*etcdv1.NetworkPolicySpec
}

// of returns the record as in [etcd.World].
func (n *networkPolicies) of(want *etcdv1.EtcdCluster) *etcdv1.NetworkPolicySpec {
	n.mu.Lock()
	defer n.mu.Unlock()
	is := n.taken[want.UID]
	if equality.Semantic.DeepEqual(is, want.Status.NetworkPolicy) {
		delete(n.taken, want.UID)
	}
	return is
}

// take puts the present spec.networkPolicy into effect. The next reconcile applies the NetworkPolicy.
func (n *networkPolicies) take(want *etcdv1.EtcdCluster) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.taken == nil {
		n.taken = map[types.UID]*etcdv1.NetworkPolicySpec{}
	}
	n.taken[want.UID] = want.Spec.NetworkPolicy.DeepCopy()
}
