package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// changedWithin is how long a change of the member list may take; etcd itself gives
// up after seven seconds. What comes of it shows in the next observation.
const changedWithin = 8 * time.Second

// reconfigure changes etcd's member list, or its leader. What has been done already
// is done.
func (d *Driver) reconfigure(ctx context.Context, v view, s lifecycle.Step) error {
	if v.speaker.line == nil {
		return &lifecycle.Postponed{Because: "no member has a quorum behind it"}
	}
	ctx, cancel := context.WithTimeout(ctx, changedWithin)
	defer cancel()
	cluster := pb.NewClusterClient(v.speaker.line)
	id, err := strconv.ParseUint(s.Args[etcd.ArgID], 16, 64)
	adds := s.Name == etcd.AddLearner || s.Name == etcd.AddVoter
	if err != nil && !adds {
		return fmt.Errorf("%s: bad member ID: %w", s, err)
	}
	switch s.Name {
	case etcd.AddLearner, etcd.AddVoter:
		_, err = cluster.MemberAdd(ctx, &pb.MemberAddRequest{
			PeerURLs: []string{s.Args[etcd.ArgPeerURL]}, IsLearner: s.Name == etcd.AddLearner,
		})
		return unless(err, rpctypes.ErrPeerURLExist)
	case etcd.Promote:
		_, err = cluster.MemberPromote(ctx, &pb.MemberPromoteRequest{ID: id})
		return unless(err, rpctypes.ErrMemberNotLearner)
	case etcd.RemoveMember:
		_, err = cluster.MemberRemove(ctx, &pb.MemberRemoveRequest{ID: id})
		return unless(err, rpctypes.ErrMemberNotFound)
	case etcd.MoveLeader:
		return moveLeader(ctx, v.speaker, id, s)
	}
	return fmt.Errorf("etcd has no step %s", s)
}

// moveLeader can be asked of the leader only.
func moveLeader(ctx context.Context, speaker answer, to uint64, s lifecycle.Step) error {
	self := speaker.status.Header.GetMemberId()
	if speaker.status.Leader == to {
		return nil
	}
	if self != speaker.status.Leader || strconv.FormatUint(self, 16) != s.Args[etcd.ArgFrom] {
		return &lifecycle.Postponed{Because: "another member leads now"}
	}
	_, err := pb.NewMaintenanceClient(speaker.line).MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: to})
	return unless(err)
}

// refusals are etcd's own gates: it changes nothing, and asks to come back later. It
// calls a cluster unhealthy until every voter has been connected for five seconds.
var refusals = []error{
	rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrMemberLearnerNotReady, rpctypes.ErrTooManyLearners,
	rpctypes.ErrNoLeader,
}

// unless returns the error in etcd's words, unless it is one of those.
func unless(err error, those ...error) error {
	if err == nil {
		return nil
	}
	said := rpctypes.Error(err)
	is := func(one error) bool { return errors.Is(said, one) }
	switch {
	case slices.ContainsFunc(those, is):
		return nil
	case slices.ContainsFunc(refusals, is):
		return &lifecycle.Postponed{Because: "etcd says: " + rpctypes.ErrorDesc(err)}
	}
	return said
}
