package node

import (
	"bytes"
	"net/netip"
	"os"
	"strings"
)

// resolvConf is the machine's name server configuration as a node can use it: a resolver on the machine's own loopback,
// such as systemd-resolved's, is out of a node's reach, so the file with the real ones is taken instead.
func resolvConf() []byte {
	for _, file := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		data, err := os.ReadFile(file)
		if err == nil && reachable(data) {
			return data
		}
	}
	// Nothing answers on .invalid's behalf: a query fails at once instead of looping back into the cluster's DNS.
	return []byte("nameserver 192.0.2.1\n")
}

// reachable tells whether the first name server is not a loopback address.
func reachable(conf []byte) bool {
	for line := range bytes.Lines(conf) {
		if server, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "nameserver "); ok {
			addr, err := netip.ParseAddr(strings.TrimSpace(server))
			return err == nil && !addr.IsLoopback()
		}
	}
	return false
}
