package network

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const ipForward = "/proc/sys/net/ipv4/ip_forward"

// table is the name of the nft table of the cluster on the host.
func (p Plan) table() string { return fmt.Sprintf("localkube%d", int(p)) }

// Masquerade lets nodes and pods reach what this machine reaches, under its address, so that images can be pulled where
// there is a registry.
func (p Plan) Masquerade() error {
	if err := os.WriteFile(ipForward, []byte("1"), 0); err != nil {
		return fmt.Errorf("turn on IP forwarding: %w", err)
	}
	return nft(nil, fmt.Sprintf(`
table ip %[1]s
delete table ip %[1]s
table ip %[1]s {
	chain postrouting {
		type nat hook postrouting priority srcnat
		ip saddr { %[2]s, %[3]s } oifname != "%[4]s" masquerade
	}
}`, p.table(), p.Nodes(), p.AllPods(), p.Bridge()))
}

// RemoveMasquerade takes the cluster's nft table away, if there is one.
func (p Plan) RemoveMasquerade() error {
	return nft(nil, fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s", p.table()))
}

// Forwarding tells whether the machine forwards packets between its networks: "1" or "0".
func Forwarding() string {
	data, _ := os.ReadFile(ipForward)
	return strings.TrimSpace(string(data))
}

// SetForwarding puts back what [Forwarding] said before.
func SetForwarding(value string) error { return os.WriteFile(ipForward, []byte(value), 0) }

// nft runs a script, in the namespaces that the prefix command enters.
func nft(enter []string, script string) error {
	args := append(enter, "nft", "-f", "-")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(out.String()))
	}
	return nil
}
