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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// changedWithin is how long a change of the member list may take; etcd itself gives
// up after seven seconds. What comes of it shows in the next observation.
const changedWithin = 8 * time.Second

// othersAfter is how long a member may take for a change before another is asked too. A
// proposal that was on its way to a leader that died is lost, and who made it waits for
// it until etcd gives up; a change takes milliseconds otherwise.
const othersAfter = time.Second

// reconfigure changes etcd's member list, or its leader. What has been done already
// is done.
//
// A member may take its peers for disconnected that are not: rafthttp calls a peer
// inactive when one message fails, and active again only when a connection is made
// anew. Such a member refuses every change, so others are asked then; and so they are
// when a member has just gone, or says nothing. Whoever has made the change all the same
// is believed: asking again does nothing.
func (d *Driver) reconfigure(ctx context.Context, v view, s lifecycle.Step) error {
	if !v.world.Listed || len(v.speakers) == 0 {
		return &lifecycle.Deferred{Reason: "no member has a quorum behind it"}
	}
	ctx, cancel := context.WithTimeout(ctx, changedWithin)
	defer cancel()
	var err error
	for i, speaker := range v.speakers {
		within := othersAfter
		if i == len(v.speakers)-1 || s.Name == etcd.MoveLeader {
			within = changedWithin
		}
		if err = changeWithin(ctx, within, speaker, s); !othersMayKnow(err, s) {
			break
		}
	}
	return postponed(err)
}

func changeWithin(ctx context.Context, within time.Duration, speaker answer, s lifecycle.Step) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return change(ctx, speaker, s)
}

// othersMayKnow says that another member may do what this one has not. Only the leader
// itself can give the leadership away.
func othersMayKnow(err error, s lifecycle.Step) bool {
	switch status.Code(err) {
	case codes.Unavailable:
		return true
	case codes.DeadlineExceeded:
		return s.Name != etcd.MoveLeader
	}
	return errors.Is(rpctypes.Error(err), rpctypes.ErrUnhealthy)
}

// change asks one member.
func change(ctx context.Context, speaker answer, s lifecycle.Step) error {
	cluster := pb.NewClusterClient(speaker.line)
	if s.Name == etcd.AddLearner || s.Name == etcd.AddVoter {
		_, err := cluster.MemberAdd(ctx, &pb.MemberAddRequest{
			PeerURLs: []string{s.Args[etcd.ArgPeerURL]}, IsLearner: s.Name == etcd.AddLearner,
		})
		return except(err, rpctypes.ErrPeerURLExist)
	}
	id, err := strconv.ParseUint(s.Args[etcd.ArgID], 16, 64)
	if err != nil {
		return fmt.Errorf("%s: bad member ID: %w", s, err)
	}
	switch s.Name {
	case etcd.Promote:
		_, err = cluster.MemberPromote(ctx, &pb.MemberPromoteRequest{ID: id})
		return except(err, rpctypes.ErrMemberNotLearner)
	case etcd.RewriteMemberEntry, etcd.UpdatePeerURL:
		_, err = cluster.MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: id, PeerURLs: []string{s.Args[etcd.ArgPeerURL]}})
		return err
	case etcd.Disarm:
		_, err = pb.NewMaintenanceClient(speaker.line).Alarm(ctx, &pb.AlarmRequest{
			Action: pb.AlarmRequest_DEACTIVATE, MemberID: id, Alarm: pb.AlarmType_NOSPACE,
		})
		return err
	case etcd.RemoveMember:
		_, err = cluster.MemberRemove(ctx, &pb.MemberRemoveRequest{ID: id})
		return except(err, rpctypes.ErrMemberNotFound)
	case etcd.MoveLeader:
		return moveLeader(ctx, speaker, id, s)
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
		return &lifecycle.Deferred{Reason: "another member leads now"}
	}
	_, err := pb.NewMaintenanceClient(speaker.line).MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: to})
	return err
}

// unhealthyEvery is how often a cluster is asked again that etcd calls unhealthy, which it
// does until every voter has been connected for five seconds (server/etcdserver,
// HealthInterval). Nobody tells when they are over.
const unhealthyEvery = 500 * time.Millisecond

// refusals are etcd's own gates: it changes nothing, and asks to come back later.
var refusals = []error{
	rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrMemberLearnerNotReady, rpctypes.ErrTooManyLearners,
	rpctypes.ErrNoLeader,
}

// except returns the error, unless it says that there is nothing left to do.
func except(err, done error) error {
	if errors.Is(rpctypes.Error(err), done) {
		return nil
	}
	return err
}

// postponed makes a refusal of etcd's a postponement, in etcd's words.
func postponed(err error) error {
	said := rpctypes.Error(err)
	if !slices.ContainsFunc(refusals, func(one error) bool { return errors.Is(said, one) }) {
		return said
	}
	p := &lifecycle.Deferred{Reason: "etcd says: " + rpctypes.ErrorDesc(err)}
	if errors.Is(said, rpctypes.ErrUnhealthy) {
		p.After = unhealthyEvery
	}
	return p
}
