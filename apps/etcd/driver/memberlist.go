package driver

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// memberList is etcd's member list.
type memberList struct {
	// cluster is the ID of the cluster, 0 if nobody answers for it.
	cluster uint64
	// speaker told the list, with a quorum behind it; without one nothing is known.
	speaker answer
	entries []entry
	alarms  []*pb.AlarmMember
	// divided says how members of one cluster differ about who is a member.
	divided string
}

type entry struct {
	*pb.Member
	name     string
	stranger bool
}

func (r memberList) known() bool { return r.speaker.line != nil }

// ours are the names of the listed members that are the cluster's own.
func (r memberList) ours() map[string]bool {
	all := map[string]bool{}
	for _, e := range r.entries {
		if !e.stranger {
			all[e.name] = true
		}
	}
	return all
}

// call asks the members for their list, the leader first. Before 3.5 a list is not
// linearizable by itself (CHANGELOG-3.5), but who has just answered a linearizable
// read has applied every change of the list that came before it.
func call(ctx context.Context, want *etcdv1.EtcdCluster, cluster uint64, said map[string]answer, known map[string]bool) memberList {
	r := memberList{cluster: cluster}
	able := quorumMembers(cluster, said)
	if r.divided = divided(ctx, able); r.divided != "" {
		return r
	}
	for _, a := range able {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		list, err := pb.NewClusterClient(a.line).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
		if err != nil || list.Header.GetClusterId() != cluster {
			continue
		}
		r.speaker, r.entries = a, identify(want, cluster, list.Members, said, known)
		r.alarms = alarms(ctx, a, said)
		return r
	}
	return r
}

// divided compares the lists of all speakers that do not follow one leader. After
// --force-new-cluster a member keeps both its IDs and lists only itself, while the others
// serve on: to believe one list would remove who is only in the other.
func divided(ctx context.Context, able []answer) string {
	led := func(a, b answer) bool { return a.status.Leader == b.status.Leader }
	if len(slices.CompactFunc(slices.Clone(able), led)) < 2 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	lists := map[string][]string{}
	for _, a := range able {
		list, err := pb.NewClusterClient(a.line).MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
		if err != nil {
			continue // it has no quorum behind it any more
		}
		key := strings.Join(ids(list.Members), " ")
		lists[key] = append(lists[key], strconv.FormatUint(a.status.Header.GetMemberId(), 16))
	}
	if len(lists) < 2 {
		return ""
	}
	var all []string
	for _, list := range slices.Sorted(maps.Keys(lists)) {
		all = append(all, strings.Join(lists[list], ", ")+" says "+list)
	}
	return strings.Join(all, "; ")
}

func ids(members []*pb.Member) []string {
	var all []string
	for _, m := range members {
		all = append(all, strconv.FormatUint(m.ID, 16))
	}
	slices.Sort(all)
	return all
}

// quorumMembers are the voters that have a quorum behind them, the leader first.
func quorumMembers(cluster uint64, said map[string]answer) []answer {
	var able []answer
	for _, a := range said {
		if a.status != nil && a.health == etcd.Healthy && !a.status.IsLearner && cluster != 0 && a.status.Header.GetClusterId() == cluster {
			able = append(able, a)
		}
	}
	rank := func(a answer) uint64 {
		if a.status.Leader == a.status.Header.GetMemberId() {
			return 0
		}
		return a.status.Header.GetMemberId()
	}
	slices.SortFunc(able, func(a, b answer) int { return cmp.Compare(rank(a), rank(b)) })
	return able
}

// alarms asks only if a member hints at one; before 3.4 none can.
func alarms(ctx context.Context, speaker answer, said map[string]answer) []*pb.AlarmMember {
	hint := false
	for _, a := range said {
		hint = hint || a.status != nil && (len(a.status.Errors) > 0 || a.status.RaftAppliedIndex == 0)
	}
	if !hint {
		return nil
	}
	got, err := pb.NewMaintenanceClient(speaker.line).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET})
	if err != nil {
		return nil
	}
	return got.Alarms
}
