package etcd

import (
	corev1 "k8s.io/api/core/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// References is one of the [Abilities]: the Secrets of the user, which cert-manager or a user
// renews.
func (Planner) References(want *etcdv1.EtcdCluster) []lifecycle.Reference {
	var all []lifecycle.Reference
	named := own(want)
	for _, name := range []string{named.Peer, named.Server, named.Client} {
		if name != "" {
			all = append(all, lifecycle.Reference{Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespace: want.Namespace, Name: name})
		}
	}
	return all
}
