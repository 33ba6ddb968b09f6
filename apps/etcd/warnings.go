package etcd

import (
	"fmt"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// Warnings is one of the [Abilities]: it warns about the cost of a revocation.
func (Planner) Warnings(old, want *etcdv1.EtcdCluster) []string {
	if old == nil || !revokes(want) || revokes(old) && old.Spec.TLS.RevokeBefore.Equal(want.Spec.TLS.RevokeBefore) {
		return nil
	}
	return []string{fmt.Sprintf(
		"spec.tls.revokeBefore: at %s members with an older authority restart twice, one at a time, and then refuse its certificates: "+
			"clients must read the Secret %s again.", want.Spec.TLS.RevokeBefore.UTC().Format(time.RFC3339), ClientSecret(want))}
}
