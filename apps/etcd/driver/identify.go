package driver

import (
	"net/url"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// evidence says which member an entry of etcd's list is; false if it cannot tell.
type evidence func(*pb.Member) (name string, ok bool)

// identify tells which entries of the list are our members. A member's ID says who it
// is: as its own pod answers, or as the status remembers it. Its name and its URL are
// hints, for etcdctl can change a URL and a member that has not started has no name. The
// stronger evidence speaks first, for all entries, and names each member once.
//
// With etcdctl, every client can add a member with any URL. A URL names a member of ours
// only if Governor may have given it: the name has objects, or no higher number than the
// next one.
func identify(want *etcdv1.EtcdCluster, cluster uint64, list []*pb.Member, said map[string]answer, known map[string]bool) []entry {
	entries := make([]entry, len(list))
	taken := map[string]bool{}
	for _, tells := range []evidence{answered(cluster, said), rememberedID(want), published(said), byURL(want, known)} {
		for i, m := range list {
			if name, ok := tells(m); ok && entries[i].Member == nil && !taken[name] {
				entries[i], taken[name] = entry{Member: m, name: name}, true
			}
		}
	}
	for i, m := range list {
		if entries[i].Member == nil {
			entries[i] = entry{Member: m, name: strconv.FormatUint(m.ID, 16), stranger: true}
		}
	}
	return entries
}

// answered is the word of the member's own pod.
func answered(cluster uint64, said map[string]answer) evidence {
	ids := map[uint64]string{}
	for name, a := range said {
		if a.status != nil && a.status.Header.GetClusterId() == cluster {
			ids[a.status.Header.GetMemberId()] = name
		}
	}
	return func(m *pb.Member) (string, bool) {
		name, ok := ids[m.ID]
		return name, ok
	}
}

// rememberedID is what the status says of members that answered before.
func rememberedID(want *etcdv1.EtcdCluster) evidence {
	ids := map[string]string{}
	for _, m := range want.Status.Members {
		if etcd.IsMemberName(want, m.Name) {
			ids[m.ID] = m.Name
		}
	}
	return func(m *pb.Member) (string, bool) {
		name, ok := ids[strconv.FormatUint(m.ID, 16)]
		return name, ok
	}
}

// published is the name that a member gave itself when it started. Only pods of ours
// have such names.
func published(said map[string]answer) evidence {
	return func(m *pb.Member) (string, bool) {
		_, ours := said[m.Name]
		return m.Name, ours
	}
}

// byURL is the place that the operator gave the member, in any spelling of the pod's
// name that DNS knows.
func byURL(want *etcdv1.EtcdCluster, known map[string]bool) evidence {
	return func(m *pb.Member) (string, bool) {
		for _, peer := range m.PeerURLs {
			if name, ok := nameOf(want, peer); ok && (known[name] || etcd.MayHaveAdded(want, name)) {
				return name, true
			}
		}
		return "", false
	}
}

func nameOf(want *etcdv1.EtcdCluster, peer string) (string, bool) {
	u, err := url.Parse(peer)
	if err != nil {
		return "", false
	}
	host, _, _ := strings.Cut(u.Hostname(), ".")
	name, ok := strings.CutSuffix(host, "-0")
	if !ok || !etcd.IsMemberName(want, name) {
		return "", false
	}
	ours, err := url.Parse(etcd.PeerURL(want, name))
	return name, err == nil && u.Scheme == ours.Scheme && u.Port() == ours.Port() && sameHost(u.Hostname(), ours.Hostname())
}

// sameHost compares names with and without the domain of the Kubernetes cluster.
func sameHost(a, b string) bool {
	short := func(host string) string {
		before, _, _ := strings.Cut(host+".", ".svc.")
		return before
	}
	return short(a) == short(b)
}
