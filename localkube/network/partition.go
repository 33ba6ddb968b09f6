package network

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// cutTable is the nft table inside a node that holds its partition; it goes when the node goes.
const cutTable = "localkube_partition"

// Unplug cuts node n from everything: its cable is pulled.
func (p Plan) Unplug(n int) error { return p.plug(n, netlink.LinkSetDown) }

// Plug puts the cable of node n back.
func (p Plan) Plug(n int) error { return p.plug(n, netlink.LinkSetUp) }

func (p Plan) plug(n int, set func(netlink.Link) error) error {
	link, err := netlink.LinkByName(p.Link(n))
	if err != nil {
		return fmt.Errorf("cable of node %d: %w", n, err)
	}
	return set(link)
}

// Cut makes the node whose namespaces pid lives in drop all packets to and from the given nodes and their pods, in both
// directions, also of connections that exist; node 0 stands for the API server's machine. Earlier cuts are replaced.
func (p Plan) Cut(pid int, from []int) error {
	var far []string
	for _, n := range from {
		if n == 0 {
			far = append(far, p.Gateway().String())
		} else {
			far = append(far, p.Node(n).String(), p.Pods(n).String())
		}
	}
	return nft(inNetworkOf(pid), fmt.Sprintf(`
table ip %[1]s
delete table ip %[1]s
table ip %[1]s {
	set far { type ipv4_addr; flags interval; elements = { %[2]s } }
	chain in { type filter hook prerouting priority raw; ip saddr @far drop; }
	chain out { type filter hook postrouting priority 300; ip daddr @far drop; }
}`, cutTable, strings.Join(far, ", ")))
}

// Heal ends the cuts of the node whose namespaces pid lives in.
func (p Plan) Heal(pid int) error {
	return nft(inNetworkOf(pid), fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s", cutTable))
}

func inNetworkOf(pid int) []string {
	return []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", pid)}
}

// IsCut tells whether the node has cuts of [Plan.Cut].
func (p Plan) IsCut(pid int) bool {
	return nft(inNetworkOf(pid), "list table ip "+cutTable) == nil
}

// IsUnplugged tells whether the cable of node n is pulled.
func (p Plan) IsUnplugged(n int) bool {
	link, err := netlink.LinkByName(p.Link(n))
	return err == nil && link.Attrs().RawFlags&unix.IFF_UP == 0
}
