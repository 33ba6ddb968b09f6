package etcd

import (
	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Abilities returns the planner's optional abilities.
func Abilities() lifecycle.Abilities[*etcdv1.EtcdCluster, World] {
	p := Planner{}
	return lifecycle.Abilities[*etcdv1.EtcdCluster, World]{
		IsPaused: (*etcdv1.EtcdCluster).IsPaused, Warnings: p.Warnings, Impact: p.Impact, Unknowns: p.Unknowns, WithResources: p.WithResources,
		Evidence: p.Evidence, DependsOn: p.DependsOn, Retain: p.Retain, Images: p.Images, References: p.References, AppliesChange: p.AppliesChange,
		Protect: p.Protect,
	}
}
