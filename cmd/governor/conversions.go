package main

import (
	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
	"github.com/governor-dev/governor/apps/etcd/legacy"
	"github.com/governor-dev/governor/kube/conversion"
)

// converted are the definitions of kinds with several versions. Others' may be
// missing; they are written by name only, so each needs a right of its own.
var converted = []string{"etcdclusters.etcd.database.coreos.com"}

// conversions are between the versions of those kinds.
func conversions() *conversion.Handler {
	const cluster = "EtcdCluster"
	h := conversion.New()
	conversion.Add(h, v1beta2.GroupVersion.WithKind(cluster), etcdv1.GroupVersion, legacy.ToV1, legacy.RestoreV1)
	conversion.Add(h, etcdv1.GroupVersion.WithKind(cluster), v1beta2.GroupVersion, legacy.FromV1, legacy.CarryV1)
	return h
}
