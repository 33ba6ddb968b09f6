package driver

import (
	"context"
	"net"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podAddress resolves the URL to a pod of the namespace. A client with access to the member list
// can write any URL into it, and the operator reaches more of the network than the tenant does.
// Pods on the host network are excluded: their address is the node's.
func (d *Driver) podAddress(ctx context.Context, namespace string, u *url.URL) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, startingWithin)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil || u.Port() == "" {
		return "", false
	}
	var pods corev1.PodList
	for _, ip := range ips {
		err := d.live.List(ctx, &pods, client.InNamespace(namespace), client.MatchingFields{"status.podIP": ip})
		if err == nil && slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return !p.Spec.HostNetwork }) {
			return net.JoinHostPort(ip, u.Port()), true
		}
	}
	return "", false
}
