package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// layout is the kind of instance in a round. Its text is the number of members, and features with
// dashes between them, such as 3-tls-memory-freeze.
type layout struct {
	size     int32
	features []string
}

// Features of a layout. One of the first group is always there.
const (
	plain      = "plain"   // without TLS
	managedTLS = "tls"     // with certificates of the operator, and a NetworkPolicy
	ownTLS     = "secrets" // with the user's own certificates

	memcached = "memcached" // a Memcached, and no EtcdCluster
	podset    = "podset"    // a PodSet

	ephemeral = "ephemeral" // the data is on the node's disk, as long as the pod
	memory    = "memory"    // the data is in memory
	deletes   = "delete"    // the volumes are deleted with the instance
	legacy    = "legacy"    // created in v1beta2

	freezes = "freeze" // an OperationPolicy freezes changes, and the freeze ends
	windows = "window" // an OperationPolicy permits changes in every second minute
	budgets = "budget" // an OperationPolicy permits one disrupted instance

	neighbor = "neighbor" // a second instance has a similar name
)

// groups are features that exclude each other.
var groups = [][]string{{plain, managedTLS, ownTLS, memcached, podset}, {ephemeral, memory, deletes}, {legacy}, {freezes, windows, budgets}, {neighbor}}

func (l layout) String() string {
	return strings.Join(append([]string{strconv.Itoa(int(l.size))}, l.features...), "-")
}

func (l layout) has(feature string) bool { return slices.Contains(l.features, feature) }

// tls reports whether clients need certificates.
func (l layout) tls() bool { return l.has(managedTLS) || l.has(ownTLS) }

// volatile reports whether the data goes with the pods.
func (l layout) volatile() bool { return l.has(ephemeral) || l.has(memory) }

// policy reports whether an OperationPolicy selects the instance.
func (l layout) policy() bool { return l.has(freezes) || l.has(windows) || l.has(budgets) }

func (l layout) without(dropped ...string) layout {
	l.features = slices.DeleteFunc(slices.Clone(l.features), func(f string) bool { return slices.Contains(dropped, f) })
	return l
}

func parseLayout(text string) (layout, error) {
	words := strings.Split(text, "-")
	n, err := strconv.ParseInt(words[0], 10, 32)
	l := layout{int32(n), words[1:]}
	switch {
	case err != nil:
	case n < 1 || n > 9:
		err = fmt.Errorf("%d members are not 1 to 9", n)
	default:
		err = l.validate()
	}
	if err != nil {
		return layout{}, fmt.Errorf("-layout: %q is not such as 3-tls or 5-plain-memory-freeze: %w", text, err)
	}
	return l, nil
}

func (l layout) validate() error {
	for _, f := range l.features {
		if !slices.ContainsFunc(groups, func(g []string) bool { return slices.Contains(g, f) }) {
			return fmt.Errorf("%q is no feature: allowed are %v", f, groups)
		}
	}
	for i, g := range groups {
		n := 0
		for _, f := range g {
			if l.has(f) {
				n++
			}
		}
		if n > 1 || i == 0 && n == 0 {
			return fmt.Errorf("needs one of %v, and has %d", g, n)
		}
	}
	if _, ok := l.application(); ok && len(l.features) > 1 {
		return fmt.Errorf("only an EtcdCluster has further features than %s", l.features[0])
	}
	if l.has(legacy) && (l.has(managedTLS) || l.has(memory) || l.has(deletes)) {
		return fmt.Errorf("v1beta2 has no %s, %s and %s", managedTLS, memory, deletes)
	}
	return nil
}

// chosenLayout prefers layouts that tolerate a loss, and few features.
func chosenLayout(chance *rand.Rand) layout {
	l := layout{size: []int32{1, 3, 3, 3, 3, 5}[chance.IntN(6)], features: []string{[]string{plain, managedTLS, managedTLS, ownTLS}[chance.IntN(4)]}}
	add := func(one int, of ...string) {
		if n := chance.IntN(one); n < len(of) {
			l.features = append(l.features, of[n])
		}
	}
	if l.size > 1 {
		add(8, ephemeral, memory)
	}
	if !l.volatile() {
		add(4, deletes)
	}
	add(6, legacy)
	add(9, freezes, windows, budgets)
	add(6, neighbor)
	if l.validate() != nil {
		return l.without(legacy)
	}
	return l
}

// fitting drops the features in which the manipulations cannot be judged: a volume that is full needs
// a volume, and a policy holds deletions.
func (l layout) fitting(moves chaos.Composition, all chaos.Catalogue) layout {
	if hasDisk(moves, all) {
		l = l.without(ephemeral, memory)
	}
	if _, ok := deletion(moves, all); ok {
		l = l.without(freezes, windows, budgets)
	}
	return l
}

// accepts reports whether the layout makes a manipulation valid that is refused otherwise.
func (l layout) accepts(name string) bool {
	return l.volatile() && strings.Contains(name, "-storage-") || l.has(ownTLS) && strings.HasSuffix(name, "-tls-other") ||
		l.has(memory) && strings.HasSuffix(name, "storage-memory")
}

// spec is the spec of the layout in v1.
func (l layout) spec() etcdv1.EtcdClusterSpec {
	spec := etcdv1.EtcdClusterSpec{Size: l.size, Version: "3.6", TLS: etcdv1.TLSSpec{Mode: etcdv1.TLSModeDisabled}}
	spec.Storage.Size = new(storageSize.DeepCopy())
	switch {
	case l.has(managedTLS):
		spec.TLS.Mode, spec.NetworkPolicy.Enabled = etcdv1.TLSModeManaged, true
	case l.has(ownTLS):
		spec.TLS = etcdv1.TLSSpec{Mode: etcdv1.TLSModeSecrets, Secrets: &etcdv1.TLSSecrets{Peer: ownPeer, Server: ownServer, Client: ownClient}}
	}
	switch {
	case l.has(ephemeral):
		spec.Storage.Medium, spec.Storage.Size = etcdv1.MediumEphemeral, new(diskSize.DeepCopy())
	case l.has(memory):
		spec.Storage.Medium, spec.Storage.Size = etcdv1.MediumMemory, new(diskSize.DeepCopy())
	case l.has(deletes):
		spec.Storage.Retention = etcdv1.RetentionDelete
	}
	return spec
}
