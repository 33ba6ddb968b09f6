package driver

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

func TestIdentifyByURL(t *testing.T) {
	cases := map[string]struct {
		reason, domain string
		urls           []string
		want           string
		unmanaged      bool
	}{
		"Ours":      {"the URL that Governor gave it", "", []string{"http://my-etcd-3-0.my-etcd.ns.svc:2380"}, "my-etcd-3", false},
		"Domain":    {"with the cluster's domain", "c.local", []string{"http://my-etcd-3-0.my-etcd.ns.svc.c.local:2380"}, "my-etcd-3", false},
		"NoDomain":  {"another spelling of the same name", "c.local", []string{"http://my-etcd-3-0.my-etcd.ns.svc:2380"}, "my-etcd-3", false},
		"Spelled":   {"the full name, written with etcdctl", "", []string{"http://my-etcd-3-0.my-etcd.ns.svc.cluster.local:2380"}, "my-etcd-3", false},
		"Dot":       {"and with a dot at its end", "", []string{"http://my-etcd-3-0.my-etcd.ns.svc.cluster.local.:2380"}, "my-etcd-3", false},
		"Second":    {"another URL was added to it", "", []string{"http://1.2.3.4:2380", "http://my-etcd-0-0.my-etcd.ns.svc:2380"}, "my-etcd-0", false},
		"Scheme":    {"another cluster's member may have the same name", "", []string{"https://my-etcd-0-0.my-etcd.ns.svc:2380"}, "f0", true},
		"Namespace": {"in another namespace", "", []string{"http://my-etcd-0-0.my-etcd.other.svc:2380"}, "f0", true},
		"Cluster":   {"of another cluster in the namespace", "", []string{"http://my-etcd-0-0.etcd.ns.svc:2380"}, "f0", true},
		"NoNumber":  {"a pod that is none of a member", "", []string{"http://my-etcd-x-0.my-etcd.ns.svc:2380"}, "f0", true},
		"Garbage":   {"etcd rejects it, but a faulty member may return it", "", []string{":// x"}, "f0", true},
		"TooHigh":   {"no operator assigned the number", "", []string{"http://my-etcd-9223372036854775806-0.my-etcd.ns.svc:2380"}, "f0", true},
		"Prefix":    {"another cluster's member under our Service", "", []string{"http://orders-0-0.my-etcd.ns.svc:2380"}, "f0", true},
		"Zeros":     {"a number that is written in another way", "", []string{"http://my-etcd-00-0.my-etcd.ns.svc:2380"}, "f0", true},
		"None":      {"no URL at all", "", nil, "f0", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := identify(plain(c.domain), 1, []*pb.Member{{ID: 0xf0, PeerURLs: c.urls}}, nil, map[string]bool{"my-etcd-3": true})[0]
			if got.name != c.want || got.unmanaged != c.unmanaged {
				t.Errorf("%s: got %s, unmanaged %v", c.reason, got.name, got.unmanaged)
			}
		})
	}
}

// Two pods that answer as one member are both unknown: the original must not be taken for the copy.
func TestSharedIdentity(t *testing.T) {
	for i := range 20 { // maps have another order each time
		responses := map[string]answer{
			"my-etcd-0": answerOf(0xf0, 1, 0, etcd.Healthy),
			"my-etcd-1": answerOf(0xf0, 1, 0, etcd.Healthy),
			"my-etcd-2": answerOf(0xf2, 1, 0, etcd.Healthy),
			"my-etcd-3": answerOf(0xf2, 2, 0, etcd.Healthy), // of another cluster
		}
		address := func(name string) string { return name }
		if i%2 == 1 {
			address = func(string) string { return "10.0.0.1" } // a node has rebooted
		}
		said := setAsideShared(responses, address)
		if copied := said == "my-etcd-0 and my-etcd-1 answer as the member f0"; copied != (i%2 == 0) || !copied && said != "" {
			t.Fatalf("got %q", said)
		}
		for name, known := range map[string]bool{"my-etcd-0": false, "my-etcd-1": false, "my-etcd-2": true, "my-etcd-3": true} {
			if a := responses[name]; (a.status != nil) != known || (a.health == etcd.Healthy) != known {
				t.Errorf("%s: %+v", name, a)
			}
		}
		want := plain("")
		want.Status.Members = []etcdv1.MemberStatus{{Name: "my-etcd-0", ID: "f0"}, {Name: "my-etcd-1", ID: "f1"}}
		for n, got := range identify(want, 1, []*pb.Member{{ID: 0xf0}, {ID: 0xf1}, {ID: 0xf2}}, responses, nil) {
			if name := fmt.Sprintf("my-etcd-%d", n); got.name != name || got.unmanaged {
				t.Errorf("entry %d is %s", n, got.name)
			}
		}
	}
}

// A member's ID identifies it, regardless of its URL and name.
func TestIdentifyPrefersTheStrongerEvidence(t *testing.T) {
	const ours, odd = "http://my-etcd-1-0.my-etcd.ns.svc:2380", "http://10.0.0.9:2380"
	known := func() *etcdv1.EtcdCluster {
		want := plain("")
		want.Status.Members = []etcdv1.MemberStatus{{Name: "my-etcd-1", ID: "f1"}}
		return want
	}
	cases := map[string]struct {
		reason string
		want   *etcdv1.EtcdCluster
		list   []*pb.Member
		said   map[string]answer
		names  []string
	}{
		"Answers": {"its own pod answers with the ID", plain(""), []*pb.Member{{ID: 0xf1, PeerURLs: []string{odd}}},
			map[string]answer{"my-etcd-1": answerOf(0xf1, 1, 0, etcd.Unhealthy)}, []string{"my-etcd-1"}},
		"Remembered": {"it is down, and answered with that ID before", known(), []*pb.Member{{ID: 0xf1, PeerURLs: []string{odd}}},
			map[string]answer{"my-etcd-1": {}}, []string{"my-etcd-1"}},
		"Published": {"it is down, and gave itself the name", plain(""), []*pb.Member{{ID: 0xf1, Name: "my-etcd-1", PeerURLs: []string{odd}}},
			map[string]answer{"my-etcd-1": {}}, []string{"my-etcd-1"}},
		"NoPod": {"a name that no pod of ours has proves nothing", plain(""), []*pb.Member{{ID: 0xf1, Name: "my-etcd-1", PeerURLs: []string{odd}}},
			nil, []string{"f1"}},
		"StolenURL": {"another member has its URL", known(), []*pb.Member{{ID: 0xf2, PeerURLs: []string{ours}}, {ID: 0xf1, PeerURLs: []string{odd}}},
			map[string]answer{"my-etcd-1": {}}, []string{"f2", "my-etcd-1"}},
		"OtherCluster": {"it answers for another cluster", plain(""), []*pb.Member{{ID: 0xf1, PeerURLs: []string{odd}}},
			map[string]answer{"my-etcd-1": answerOf(0xf1, 2, 0, etcd.Unhealthy)}, []string{"f1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for i, got := range identify(c.want, 1, c.list, c.said, nil) {
				if got.name != c.names[i] {
					t.Errorf("%s: entry %d is %s, want %s", c.reason, i, got.name, c.names[i])
				}
			}
		})
	}
}
