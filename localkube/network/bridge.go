package network

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// EnsureBridge makes the cluster's bridge, its address, and the machine's routes to the pods of every node, so that a
// process of the machine reaches pods directly.
func (p Plan) EnsureBridge() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = p.Bridge(), p.mac()
	if err := ignore(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}), syscall.EEXIST); err != nil {
		return fmt.Errorf("create bridge %s: %w", p.Bridge(), err)
	}
	bridge, err := netlink.LinkByName(p.Bridge())
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(bridge, address(p.Gateway(), p.Nodes())); err != nil {
		return fmt.Errorf("address of bridge %s: %w", p.Bridge(), err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return err
	}
	return p.routePods(&netlink.Handle{}, bridge, 0)
}

// routePods adds the routes to the pods of every node but the one called self.
func (p Plan) routePods(h *netlink.Handle, via netlink.Link, self int) error {
	for n := 1; n <= MaxNodes; n++ {
		if n == self {
			continue
		}
		route := &netlink.Route{LinkIndex: via.Attrs().Index, Dst: toIPNet(p.Pods(n)), Gw: p.Node(n).AsSlice()}
		if err := h.RouteReplace(route); err != nil {
			return fmt.Errorf("route to the pods of node %d: %w", n, err)
		}
	}
	return nil
}

func address(a netip.Addr, within netip.Prefix) *netlink.Addr {
	return &netlink.Addr{IPNet: toIPNet(netip.PrefixFrom(a, within.Bits()))}
}

// Attach plugs the network namespace of the process into the bridge as node n: its eth0, addresses and routes.
func (p Plan) Attach(n, pid int) error {
	if err := p.Detach(n); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(p.Bridge())
	if err != nil {
		return fmt.Errorf("bridge %s: %w", p.Bridge(), err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = p.Link(n), bridge.Attrs().Index
	cable := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("create veth %s: %w", p.Link(n), err)
	}
	if err := netlink.LinkSetUp(cable); err != nil {
		return err
	}
	return p.configureInside(n, pid)
}

func (p Plan) configureInside(n, pid int) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("network namespace of node %d: %w", n, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	if lo, err := h.LinkByName("lo"); err != nil || h.LinkSetUp(lo) != nil {
		return fmt.Errorf("loopback of node %d: %w", n, err)
	}
	eth0, err := h.LinkByName("eth0")
	if err != nil {
		return err
	}
	if err := h.AddrReplace(eth0, address(p.Node(n), p.Nodes())); err != nil {
		return err
	}
	if err := h.LinkSetUp(eth0); err != nil {
		return err
	}
	if err := h.RouteReplace(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: p.Gateway().AsSlice()}); err != nil {
		return fmt.Errorf("default route of node %d: %w", n, err)
	}
	return p.routePods(h, eth0, n)
}

// Detach takes node n's cable away, if there is one.
func (p Plan) Detach(n int) error { return deleteLink(p.Link(n)) }

// Remove takes away the bridge and every cable; the routes over them go with them.
func (p Plan) Remove() error {
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, l := range links {
		if name := l.Attrs().Name; strings.HasPrefix(name, fmt.Sprintf("lk%dn", int(p))) {
			if err := deleteLink(name); err != nil {
				return err
			}
		}
	}
	return deleteLink(p.Bridge())
}

func deleteLink(name string) error {
	link, err := netlink.LinkByName(name)
	if isLinkNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := ignore(netlink.LinkDel(link), syscall.ENODEV); err != nil {
		return fmt.Errorf("delete link %s: %w", name, err)
	}
	return nil
}

// EnsureAttached attaches node n unless its cable is there; a pulled cable is left pulled.
func (p Plan) EnsureAttached(n, pid int) error {
	if _, err := netlink.LinkByName(p.Link(n)); err == nil {
		return nil
	}
	return p.Attach(n, pid)
}
