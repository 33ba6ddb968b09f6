package driver

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// memberList is etcd's member list.
type memberList struct {
	// cluster is the ID of the cluster, 0 if no member of it answers.
	cluster uint64
	// source is the member with a quorum that returned the list; without one the list is unknown.
	source  answer
	entries []entry
	alarms  []*pb.AlarmMember
	// divided describes how the member lists of one cluster differ.
	divided string
	// foreign are the names of members that answer for another cluster.
	foreign map[string]bool
}

type entry struct {
	*pb.Member
	name      string
	unmanaged bool
}

func (r memberList) known() bool { return r.source.conn != nil }

// leftAlarms are the alarms of members that are not in the list.
func (r memberList) leftAlarms() []etcd.Alarm {
	var all []etcd.Alarm
	for _, a := range r.alarms {
		if !slices.ContainsFunc(r.entries, func(e entry) bool { return e.ID == a.MemberID }) {
			all = append(all, etcd.Alarm{ID: a.MemberID, Name: a.Alarm.String()})
		}
	}
	return all
}

// ours are the names of the listed members that Governor manages.
func (r memberList) ours() map[string]bool {
	all := map[string]bool{}
	for _, e := range r.entries {
		if !e.unmanaged {
			all[e.name] = true
		}
	}
	return all
}

// foreignMembers are the members whose own process answers for another cluster. After a restart of a node,
// another pod may have the address that Kubernetes still shows. So the process must name the client
// URL of the member, which it published in its own cluster, as its own.
func foreignMembers(ctx context.Context, want *etcdv1.EtcdCluster, r memberList, responses map[string]answer) map[string]bool {
	all := map[string]bool{}
	for name, a := range responses {
		if r.known() && a.status != nil && a.status.Header.GetClusterId() != r.cluster && publishes(ctx, a, etcd.ClientURL(want, name)) {
			all[name] = true
		}
	}
	return all
}

// publishes reports whether the answering member has published this client URL.
func publishes(ctx context.Context, a answer, clientURL string) bool {
	ctx, cancel := context.WithTimeout(ctx, startingWithin)
	defer cancel()
	list, err := pb.NewClusterClient(a.conn).MemberList(ctx, &pb.MemberListRequest{})
	return err == nil && slices.ContainsFunc(list.Members, func(m *pb.Member) bool {
		return m.ID == a.status.Header.GetMemberId() && slices.Contains(m.ClientURLs, clientURL)
	})
}

// readMemberList requests the list from the members, the leader first. Before 3.5 a list is not
// linearizable by itself (CHANGELOG-3.5). A member that has just answered a linearizable read
// has applied every earlier change of the list.
func readMemberList(ctx context.Context, want *etcdv1.EtcdCluster, cluster uint64, responses map[string]answer, known map[string]bool) memberList {
	r := memberList{cluster: cluster}
	voters := quorumMembers(cluster, responses)
	if r.divided = divided(ctx, voters); r.divided != "" {
		return r
	}
	for _, a := range voters {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		list, err := pb.NewClusterClient(a.conn).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
		if err != nil || list.Header.GetClusterId() != cluster {
			continue
		}
		r.source, r.entries = a, identify(want, cluster, list.Members, responses, known)
		r.alarms = alarms(ctx, a, responses)
		return r
	}
	return r
}

// divided compares the lists of all voters with a quorum that do not follow one leader. After
// --force-new-cluster a member keeps both its IDs and lists only itself, while the others
// continue to serve. Trusting one list would remove the members of the other.
func divided(ctx context.Context, voters []answer) string {
	led := func(a, b answer) bool { return a.status.Leader == b.status.Leader }
	if len(slices.CompactFunc(slices.Clone(voters), led)) < 2 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	lists := listsOf(ctx, voters)
	if len(lists) < 2 {
		return ""
	}
	var all []string
	for _, list := range slices.Sorted(maps.Keys(lists)) {
		all = append(all, strings.Join(slices.Sorted(slices.Values(lists[list])), ", ")+" lists "+list)
	}
	return strings.Join(all, "; ")
}

// listsOf returns the IDs of the voters by the lists that they have. It asks all of them at once:
// a slow voter must not use up the time of the others. One that does not answer no longer has a
// quorum.
func listsOf(ctx context.Context, voters []answer) map[string][]string {
	var mu sync.Mutex
	var group sync.WaitGroup
	lists := map[string][]string{}
	for _, a := range voters {
		group.Go(func() {
			list, err := pb.NewClusterClient(a.conn).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			key := strings.Join(ids(list.Members), " ")
			lists[key] = append(lists[key], strconv.FormatUint(a.status.Header.GetMemberId(), 16))
		})
	}
	group.Wait()
	return lists
}

func ids(members []*pb.Member) []string {
	var all []string
	for _, m := range members {
		all = append(all, strconv.FormatUint(m.ID, 16))
	}
	slices.Sort(all)
	return all
}

// quorumMembers are the voters that have a quorum, the leader first.
func quorumMembers(cluster uint64, responses map[string]answer) []answer {
	var voters []answer
	for _, a := range responses {
		if a.status != nil && a.health == etcd.Healthy && !a.status.IsLearner && cluster != 0 && a.status.Header.GetClusterId() == cluster {
			voters = append(voters, a)
		}
	}
	rank := func(a answer) uint64 {
		if a.status.Leader == a.status.Header.GetMemberId() {
			return 0
		}
		return a.status.Header.GetMemberId()
	}
	slices.SortFunc(voters, func(a, b answer) int { return cmp.Compare(rank(a), rank(b)) })
	return voters
}

// alarms requests the alarms only if a member indicates one; before 3.4 none does. Where they cannot be
// read, those count that the members report themselves.
func alarms(ctx context.Context, source answer, responses map[string]answer) []*pb.AlarmMember {
	hint := false
	for _, a := range responses {
		hint = hint || a.status != nil && (len(a.status.Errors) > 0 || a.status.RaftAppliedIndex == 0)
	}
	if !hint {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	got, err := pb.NewMaintenanceClient(source.conn).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET})
	if err != nil {
		return reportedAlarms(responses)
	}
	return got.Alarms
}

// reportedAlarms are the alarms in the members' own status. etcd formats them with the String method of
// its message (server/etcdserver/api/v3rpc/maintenance.go).
func reportedAlarms(responses map[string]answer) []*pb.AlarmMember {
	var all []*pb.AlarmMember
	for _, a := range responses {
		for _, text := range a.status.GetErrors() {
			alarm := &pb.AlarmMember{}
			same := func(b *pb.AlarmMember) bool { return proto.Equal(alarm, b) }
			if err := prototext.Unmarshal([]byte(text), alarm); err == nil && !slices.ContainsFunc(all, same) {
				all = append(all, alarm)
			}
		}
	}
	return all
}
