package etcd

import (
	"fmt"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// Retain is one of the [Abilities]: the API server refuses to shrink a volume, so a
// rollback keeps its present size.
func (Planner) Retain(now, earlier *etcdv1.EtcdCluster) []string {
	size := now.Spec.Storage.Size
	if Volatile(now) || size == nil || earlier.Spec.Storage.Size != nil && earlier.Spec.Storage.Size.Cmp(*size) >= 0 {
		return nil
	}
	earlier.Spec.Storage.Size = new(size.DeepCopy())
	return []string{fmt.Sprintf("spec.storage.size stays %s, as volumes only grow", size)}
}
