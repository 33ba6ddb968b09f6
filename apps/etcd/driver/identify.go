package driver

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// identifier returns the member that an entry of etcd's list describes; false if it does not
// know.
type identifier func(*pb.Member) (name string, ok bool)

// identify maps the entries of the list to managed members. A member's ID identifies it, from
// its own pod's answer or from the status. Its name and URL are hints: etcdctl can change a URL,
// and a member that has not started has no name. Stronger identifiers apply first, to all
// entries, and each member is used once.
//
// With etcdctl, every client can add a member with any URL. A URL identifies a managed member
// only if Governor may have assigned it: the name has objects, or its number is at most the next
// one.
func identify(want *etcdv1.EtcdCluster, cluster uint64, list []*pb.Member, responses map[string]answer, known map[string]bool) []entry {
	entries := make([]entry, len(list))
	taken := map[string]bool{}
	for _, identifies := range []identifier{byAnswer(cluster, responses), byRecordedID(want), byPublishedName(responses), byURL(want, known)} {
		for i, m := range list {
			if name, ok := identifies(m); ok && entries[i].Member == nil && !taken[name] {
				entries[i], taken[name] = entry{Member: m, name: name}, true
			}
		}
	}
	for i, m := range list {
		if entries[i].Member == nil {
			entries[i] = entry{Member: m, name: strconv.FormatUint(m.ID, 16), unmanaged: true}
		}
	}
	return entries
}

// setAsideShared makes the state of pods unknown that answer as one member. Which of them is the member is not known, so no
// answer counts. It describes those with addresses of their own: a data directory was copied. With one address, Kubernetes
// still shows the former address of a pod that another one has now.
func setAsideShared(responses map[string]answer, address func(name string) string) string {
	type identity struct{ cluster, member uint64 }
	names := map[identity][]string{}
	for _, name := range slices.Sorted(maps.Keys(responses)) {
		if s := responses[name].status; s != nil {
			id := identity{s.Header.GetClusterId(), s.Header.GetMemberId()}
			names[id] = append(names[id], name)
		}
	}
	var shared []string
	for id, all := range names {
		if len(all) < 2 {
			continue
		}
		addresses := map[string]bool{}
		for _, name := range all {
			addresses[address(name)] = true
			responses[name] = answer{conn: responses[name].conn}
		}
		if len(addresses) > 1 {
			shared = append(shared, fmt.Sprintf("%s answer as the member %x", strings.Join(all, " and "), id.member))
		}
	}
	slices.Sort(shared)
	return strings.Join(shared, "; ")
}

// byAnswer uses the answer of the member's own pod.
func byAnswer(cluster uint64, responses map[string]answer) identifier {
	ids := map[uint64]string{}
	for name, a := range responses {
		if a.status != nil && a.status.Header.GetClusterId() == cluster {
			ids[a.status.Header.GetMemberId()] = name
		}
	}
	return func(m *pb.Member) (string, bool) {
		name, ok := ids[m.ID]
		return name, ok
	}
}

// byRecordedID uses the IDs in the status, of members that answered before.
func byRecordedID(want *etcdv1.EtcdCluster) identifier {
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

// byPublishedName uses the name that a member published at its start. Only managed pods have
// such names.
func byPublishedName(responses map[string]answer) identifier {
	return func(m *pb.Member) (string, bool) {
		_, ours := responses[m.Name]
		return m.Name, ours
	}
}

// byURL uses the URL that the operator assigned, with any spelling of the pod's name that DNS
// resolves.
func byURL(want *etcdv1.EtcdCluster, known map[string]bool) identifier {
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
