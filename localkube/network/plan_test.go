package network

import (
	"net/netip"
	"testing"
)

func TestPlansNeverOverlap(t *testing.T) {
	type owner struct {
		plan Plan
		what string
	}
	taken := map[netip.Prefix]owner{}
	for p := Plan(0); p < maxClusters; p++ {
		for what, network := range map[string]netip.Prefix{"nodes": p.Nodes(), "pods": p.AllPods(), "services": p.Services()} {
			for other, by := range taken {
				if network.Overlaps(other) {
					t.Errorf("%s %s of plan %d overlap %s %s of plan %d", what, network, p, by.what, other, by.plan)
				}
			}
			taken[network] = owner{p, what}
		}
	}
}

func TestPlanOfOneNode(t *testing.T) {
	p := Plan(2)
	for n := 1; n <= MaxNodes; n++ {
		if !p.Nodes().Contains(p.Node(n)) || p.Node(n) == p.Gateway() {
			t.Fatalf("node %d has address %s, outside of %s or the gateway's", n, p.Node(n), p.Nodes())
		}
		if !p.AllPods().Overlaps(p.Pods(n)) {
			t.Fatalf("pods of node %d are in %s, outside of %s", n, p.Pods(n), p.AllPods())
		}
		if len(p.Link(n)) > 15 {
			t.Fatalf("link name %q is longer than Linux allows", p.Link(n))
		}
	}
}

func TestPlanCollides(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		known  string
		want   bool
	}{
		"free":           {"a machine's ordinary network is elsewhere", "192.168.1.0/24", false},
		"node network":   {"a VPN uses the same addresses as the nodes", "10.220.7.0/24", true},
		"wider":          {"a route to all of 10/8 covers everything", "10.0.0.0/8", true},
		"inside of pods": {"one host within the pods' range", "10.231.3.4/32", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(7).collides([]netip.Prefix{netip.MustParsePrefix(test.known)}); got != test.want {
				t.Errorf("%s: collides = %v, want %v", test.reason, got, test.want)
			}
		})
	}
}
