package etcd

import (
	"fmt"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// Warnings is one of the [Abilities]: it warns about the cost of a revocation.
func (Planner) Warnings(old, want *etcdv1.EtcdCluster) []string {
	if old == nil || !revokes(want) || revokes(old) && old.Spec.TLS.RevokeBefore.Equal(want.Spec.TLS.RevokeBefore) {
		return nil
	}
	return []string{fmt.Sprintf(
		"spec.tls.revokeBefore: if the authority is older, members restart twice, one at a time. Members then refuse all certificates of that authority: "+
			"clients must read the Secret %s again.", ClientSecret(want))}
}
