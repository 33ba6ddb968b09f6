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

// changedWithin is how long a change of the member list may take; etcd itself gives up after
// seven seconds. The next observation shows the result.
const changedWithin = 8 * time.Second

// othersAfter is how long one member may take for a change before Governor also asks another. A
// proposal to a leader that fails is lost, and its member waits until etcd gives up. Otherwise a
// change takes milliseconds.
const othersAfter = time.Second

// reconfigure changes etcd's member list, or its leader. Changes are idempotent.
//
// A member may treat connected peers as disconnected: rafthttp marks a peer inactive when one
// message fails, and active again only with a new connection. Such a member refuses every
// change, so Governor asks others. It also does so if a member has just terminated, or does not
// answer. A repeated request has no effect if an earlier one succeeded.
func (d *Driver) reconfigure(ctx context.Context, v view, s lifecycle.Step) error {
	if !v.world.Listed || len(v.quorumMembers) == 0 {
		return &lifecycle.Deferred{Reason: "no member with a quorum answers"}
	}
	ctx, cancel := context.WithTimeout(ctx, changedWithin)
	defer cancel()
	var err error
	for i, source := range v.quorumMembers {
		within := othersAfter
		if i == len(v.quorumMembers)-1 || s.Name == etcd.MoveLeader {
			within = changedWithin
		}
		if err = changeWithin(ctx, within, source, s); !retryWithOther(err, s) {
			break
		}
	}
	return deferred(err)
}

func changeWithin(ctx context.Context, within time.Duration, source answer, s lifecycle.Step) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return change(ctx, source, s)
}

// retryWithOther reports whether another member may succeed. Only the leader can transfer the
// leadership.
func retryWithOther(err error, s lifecycle.Step) bool {
	switch status.Code(err) {
	case codes.Unavailable:
		return true
	case codes.DeadlineExceeded:
		return s.Name != etcd.MoveLeader
	}
	return errors.Is(rpctypes.Error(err), rpctypes.ErrUnhealthy)
}

// change asks one member.
func change(ctx context.Context, source answer, s lifecycle.Step) error {
	cluster := pb.NewClusterClient(source.conn)
	if s.Name == etcd.AddLearner || s.Name == etcd.AddVoter {
		_, err := cluster.MemberAdd(ctx, &pb.MemberAddRequest{
			PeerURLs: []string{s.Args[etcd.ArgPeerURL]}, IsLearner: s.Name == etcd.AddLearner,
		})
		return ignoring(err, rpctypes.ErrPeerURLExist)
	}
	id, err := strconv.ParseUint(s.Args[etcd.ArgID], 16, 64)
	if err != nil {
		return fmt.Errorf("%s: bad member ID: %w", s, err)
	}
	switch s.Name {
	case etcd.Promote:
		_, err = cluster.MemberPromote(ctx, &pb.MemberPromoteRequest{ID: id})
		return ignoring(err, rpctypes.ErrMemberNotLearner)
	case etcd.RewriteMemberEntry, etcd.UpdatePeerURL:
		_, err = cluster.MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: id, PeerURLs: []string{s.Args[etcd.ArgPeerURL]}})
		return err
	case etcd.Disarm:
		_, err = pb.NewMaintenanceClient(source.conn).Alarm(ctx, &pb.AlarmRequest{
			Action: pb.AlarmRequest_DEACTIVATE, MemberID: id, Alarm: pb.AlarmType(pb.AlarmType_value[s.Args[etcd.ArgAlarm]]),
		})
		return err
	case etcd.RemoveMember:
		_, err = cluster.MemberRemove(ctx, &pb.MemberRemoveRequest{ID: id})
		return ignoring(err, rpctypes.ErrMemberNotFound)
	case etcd.MoveLeader:
		return moveLeader(ctx, source, id, s)
	}
	return fmt.Errorf("etcd has no step %s", s)
}

// moveLeader asks the leader; no other member accepts the request.
func moveLeader(ctx context.Context, source answer, to uint64, s lifecycle.Step) error {
	self := source.status.Header.GetMemberId()
	if source.status.Leader == to {
		return nil
	}
	if self != source.status.Leader || strconv.FormatUint(self, 16) != s.Args[etcd.ArgFrom] {
		return &lifecycle.Deferred{Reason: "another member leads now"}
	}
	_, err := pb.NewMaintenanceClient(source.conn).MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: to})
	return err
}

// unhealthyRetry is the interval for asking a cluster that etcd reports as unhealthy. It does so
// until every voter has been connected for five seconds (server/etcdserver, HealthInterval).
// etcd does not signal the end of that time.
const unhealthyRetry = 500 * time.Millisecond

// refusals are etcd's own checks: it changes nothing, and the request must be repeated later.
var refusals = []error{
	rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrMemberLearnerNotReady, rpctypes.ErrTooManyLearners,
	rpctypes.ErrNoLeader,
}

// ignoring returns the error, unless it means that the change has already been made.
func ignoring(err, done error) error {
	if errors.Is(rpctypes.Error(err), done) {
		return nil
	}
	return err
}

// deferred converts a refusal of etcd to a [lifecycle.Deferred] with etcd's message.
func deferred(err error) error {
	rpcErr := rpctypes.Error(err)
	if !slices.ContainsFunc(refusals, func(one error) bool { return errors.Is(rpcErr, one) }) {
		return rpcErr
	}
	p := &lifecycle.Deferred{Reason: "etcd refuses: " + rpctypes.ErrorDesc(err)}
	if errors.Is(rpcErr, rpctypes.ErrUnhealthy) {
		p.After = unhealthyRetry
	}
	return p
}
