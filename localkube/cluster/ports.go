package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/governor-dev/governor/localkube/process"
)

// checkPorts reports before anything starts whether another process holds a port that the control plane needs, as a program
// that listens on all addresses does.
func (c *Cluster) checkPorts() error {
	loopback := c.Plan.Loopback()
	for _, need := range []struct {
		program process.Program
		addr    netip.Addr
		port    int
	}{
		{c.etcd(), loopback, etcdClientPort},
		{c.etcd(), loopback, etcdPeerPort},
		// The cluster's own address does not exist yet; what would collide listens on all addresses, so also here.
		{c.apiServer(), loopback, c.APIPort},
		{c.controllerManager(), loopback, 10257},
		{c.scheduler(), loopback, 10259},
	} {
		if need.program.Running() {
			continue
		}
		if err := checkPort(need.addr, need.port); err != nil {
			return fmt.Errorf("%s needs port %d: %w", need.program.Group.Name(), need.port, err)
		}
	}
	return nil
}

func checkPort(addr netip.Addr, port int) error {
	l, err := net.Listen("tcp", netip.AddrPortFrom(addr, uint16(port)).String())
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("in use on this machine (`ss -ltnp sport = :%d` shows by whom); end that program, or let it listen on an address of its own; the API server's port can be changed with --api-port", port)
	}
	if err != nil {
		return err
	}
	return l.Close()
}
