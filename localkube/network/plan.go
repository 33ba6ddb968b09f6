// Package network connects the nodes of a cluster: a bridge that is the switch, a veth pair per node that is its cable,
// routes to the pods, masquerading to the outside, and the faults that a network has.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
)

const (
	// MaxNodes is how many nodes a cluster can have. All routes for them exist from the start, so that a node added later
	// changes nothing on the others.
	MaxNodes = 50
	// maxClusters is how many clusters fit beside each other into the address plan.
	maxClusters = 16
)

// Plan is the address plan of one cluster; everything follows from the cluster's number on this machine.
type Plan int

// Bridge is the name of the cluster's bridge.
func (p Plan) Bridge() string { return fmt.Sprintf("lk%dbr", int(p)) }

// Link is the name of the host's end of the cable to node n (1…MaxNodes).
func (p Plan) Link(n int) string { return fmt.Sprintf("lk%dn%d", int(p), n) }

// mac is fixed: without it a bridge takes the lowest address of its ports, which changes when a node goes away, and every
// other node holds a stale neighbour entry for the API server.
func (p Plan) mac() net.HardwareAddr { return net.HardwareAddr{0x02, 0x20, 0, 0, byte(p), 1} }

// Nodes is the network of the nodes, with the machine itself as .1.
func (p Plan) Nodes() netip.Prefix { return prefix(24, 220, byte(p)) }

// Gateway is the address of the machine in the nodes' network; the API server listens on it.
func (p Plan) Gateway() netip.Addr { return netip.AddrFrom4([4]byte{10, 220, byte(p), 1}) }

// Node is the address of node n.
func (p Plan) Node(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 220, byte(p), byte(10 + n)}) }

// AllPods is the network of the pods of all nodes.
func (p Plan) AllPods() netip.Prefix { return prefix(16, 224+byte(p), 0) }

// Pods is the network of the pods of node n.
func (p Plan) Pods(n int) netip.Prefix { return prefix(24, 224+byte(p), byte(n)) }

// Services is the network of the cluster IPs.
func (p Plan) Services() netip.Prefix { return prefix(16, 240+byte(p), 0) }

// Service is the n-th cluster IP.
func (p Plan) Service(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 240 + byte(p), 0, byte(n)})
}

// Loopback is an address that only this machine reaches, different for each cluster, so that ports never collide.
func (p Plan) Loopback() netip.Addr { return netip.AddrFrom4([4]byte{127, 220, byte(p), 1}) }

// prefix is a network within 10/8.
func prefix(bits int, b, c byte) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, b, c, 0}), bits)
}

// FreePlan is the first plan that no other cluster has taken and whose networks this machine does not know yet.
//
// Errors: none is left; the message names what is in the way.
func FreePlan(taken []Plan) (Plan, error) {
	known, err := knownNetworks()
	if err != nil {
		return 0, err
	}
	for p := Plan(0); p < maxClusters; p++ {
		if !slices.Contains(taken, p) && !p.collides(known) {
			return p, nil
		}
	}
	return 0, fmt.Errorf("no free address range: 10.220.0.0 to 10.255.255.255 is taken by %d clusters and the networks %v", len(taken), known)
}

func (p Plan) collides(known []netip.Prefix) bool {
	if _, err := netlink.LinkByName(p.Bridge()); err == nil {
		return true
	}
	return slices.ContainsFunc(known, func(k netip.Prefix) bool {
		return k.Overlaps(p.Nodes()) || k.Overlaps(p.AllPods()) || k.Overlaps(p.Services())
	})
}

// knownNetworks are the IPv4 networks that the machine has routes to, but for the default route.
func knownNetworks() ([]netip.Prefix, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("read the routes of this machine: %w", err)
	}
	var known []netip.Prefix
	for _, r := range routes {
		if p, ok := toPrefix(r.Dst); ok && p.Bits() > 0 {
			known = append(known, p)
		}
	}
	return known, nil
}

func toPrefix(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	addr, ok := netip.AddrFromSlice(n.IP.To4())
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addr, bits), ok
}

func toIPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}

// ignore drops the errors that mean that the work was done before.
func ignore(err error, done ...error) error {
	for _, d := range done {
		if errors.Is(err, d) {
			return nil
		}
	}
	return err
}

// isLinkNotFound tells whether the error says that there is no such link.
func isLinkNotFound(err error) bool {
	var missing netlink.LinkNotFoundError
	return errors.As(err, &missing) || errors.Is(err, os.ErrNotExist)
}
