package etcd

import (
	"fmt"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// Warnings says what a revocation costs.
func (Planner) Warnings(old, want *etcdv1.EtcdCluster) []string {
	if old == nil || !revokes(want) || revokes(old) && old.Spec.TLS.RevokeBefore.Equal(want.Spec.TLS.RevokeBefore) {
		return nil
	}
	return []string{fmt.Sprintf(
		"spec.tls.revokeBefore: members restart twice, one at a time, if their authority is older. Then all certificates of it are refused: "+
			"clients must read the Secret %s again.", ClientSecret(want))}
}
