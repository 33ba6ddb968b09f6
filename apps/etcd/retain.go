package etcd

import (
	"fmt"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// Retain is one of the [Abilities]: a rollback keeps what protects the data, and what cannot be
// undone.
func (Planner) Retain(now, earlier *etcdv1.EtcdCluster) (kept []string) {
	if Retains(now) && !Retains(earlier) && !Volatile(earlier) {
		earlier.Spec.Storage.Retention = now.Spec.Storage.Retention
		kept = append(kept, "spec.storage.retention stays Retain, so that the volumes outlive the cluster")
	}
	if before := now.Spec.TLS.RevokeBefore; before != nil && now.Spec.TLS.Mode == earlier.Spec.TLS.Mode &&
		(earlier.Spec.TLS.RevokeBefore == nil || earlier.Spec.TLS.RevokeBefore.Before(before)) {
		earlier.Spec.TLS.RevokeBefore = before.DeepCopy()
		kept = append(kept, "spec.tls.revokeBefore stays, as a leaked key remains revoked")
	}
	return append(kept, retainSize(now, earlier)...)
}

// retainSize keeps the present size: the API server refuses to shrink a volume.
func retainSize(now, earlier *etcdv1.EtcdCluster) []string {
	size := now.Spec.Storage.Size
	if Volatile(now) || size == nil || earlier.Spec.Storage.Size != nil && earlier.Spec.Storage.Size.Cmp(*size) >= 0 {
		return nil
	}
	earlier.Spec.Storage.Size = new(size.DeepCopy())
	return []string{fmt.Sprintf("spec.storage.size stays %s, as volumes only grow", size)}
}
