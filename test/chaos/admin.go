package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	etcdchaos "github.com/governor-dev/governor/apps/etcd/chaos"
	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// order is one admin command for a member.
type order struct {
	*adversary
	ctx     context.Context
	line    *grpc.ClientConn
	members []*pb.Member
	target  *pb.Member
	at      *pb.StatusResponse
}

// administer runs an admin command on the target-th member that answers, or on the leader if only
// the leader can run it.
func (v *adversary) administer(ctx context.Context, what chaos.Manipulation, target int) (done does.Done, err error) {
	members, err := v.list(ctx)
	if err != nil {
		return done, err
	}
	answers := slices.DeleteFunc(v.ask(ctx), func(a answer) bool { return a.err != nil })
	if len(answers) == 0 {
		return done, does.ErrNothing
	}
	if i := slices.IndexFunc(answers, func(a answer) bool { return a.status.Leader == a.status.Header.MemberId }); i >= 0 && what.Detail == etcdchaos.AdminMoveLeader {
		answers = answers[i : i+1]
	}
	to, one := answers[target%len(answers)], members[target%len(members)]
	err = v.with(ctx, address(to.pod), func(ctx context.Context, line *grpc.ClientConn) error {
		return orders[what.Detail](order{v, ctx, line, members, one, to.status})
	})
	if undo, lasts := takenBack[what.Detail]; lasts {
		done.Undo = func(ctx context.Context) error { return v.anywhere(ctx, undo) }
	}
	if err == nil {
		done.Objects = []string{one.Name}
	}
	return done, err
}

// anywhere runs the command on the first member that accepts it.
func (v *adversary) anywhere(ctx context.Context, do func(context.Context, *grpc.ClientConn) error) error {
	addresses, _ := v.addresses(ctx)
	err := does.ErrNothing
	for _, a := range addresses {
		if err = v.with(ctx, a, do); err == nil {
			return nil
		}
	}
	return err
}

// errTooFew refuses a command that would break the quorum, as an experienced administrator does.
var errTooFew = errors.New("too few voters answer for that")

var orders = map[string]func(order) error{
	etcdchaos.AdminMoveLeader:   moveLeader,
	etcdchaos.AdminRespell:      func(o order) error { return o.readdress(strings.Replace(o.url(), ".svc:", ".svc.cluster.local:", 1)) },
	etcdchaos.AdminMisdirect:    func(o order) error { return o.readdress("http://nowhere.invalid:2380") },
	etcdchaos.AdminAddLearner:   func(o order) error { return o.add(true) },
	etcdchaos.AdminAddVoter:     func(o order) error { return o.add(false) },
	etcdchaos.AdminRemove:       removeMember,
	etcdchaos.AdminAlarm:        func(o order) error { return raise(o, pb.AlarmType_NOSPACE) },
	etcdchaos.AdminCorrupt:      func(o order) error { return raise(o, pb.AlarmType_CORRUPT) },
	etcdchaos.AdminPromoteEarly: promote,
	etcdchaos.AdminAuthenticate: authenticate,
	etcdchaos.AdminDisarm:       func(o order) error { return disarm(o.ctx, o.line) },
	etcdchaos.AdminSteal:        steal,
	etcdchaos.AdminAuthOff: func(o order) error {
		_, err := pb.NewAuthClient(o.line).AuthDisable(o.ctx, &pb.AuthDisableRequest{})
		return err
	},
	etcdchaos.AdminDowngrade: func(o order) error {
		return downgrade(o.ctx, o.line, pb.DowngradeRequest_ENABLE, olderMinor(o.at.Version))
	},
	etcdchaos.AdminDowngradeStop: func(o order) error { return downgrade(o.ctx, o.line, pb.DowngradeRequest_CANCEL, "") },
	etcdchaos.AdminDefragment: func(o order) error {
		_, err := pb.NewMaintenanceClient(o.line).Defragment(o.ctx, &pb.DefragmentRequest{})
		return err
	},
	etcdchaos.AdminCompact: func(o order) error {
		_, err := pb.NewKVClient(o.line).Compact(o.ctx, &pb.CompactionRequest{Revision: o.at.Header.Revision, Physical: true})
		return err
	},
	etcdchaos.AdminSnapshot: func(o order) error {
		stream, err := pb.NewMaintenanceClient(o.line).Snapshot(o.ctx, &pb.SnapshotRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	},
	etcdchaos.AdminUser: func(o order) error {
		_, err := pb.NewAuthClient(o.line).UserAdd(o.ctx, &pb.AuthUserAddRequest{Name: "chaos", Password: "chaos"})
		return err
	},
	etcdchaos.AdminLeaseAndWrite: func(o order) error {
		_, err := pb.NewLeaseClient(o.line).LeaseGrant(o.ctx, &pb.LeaseGrantRequest{TTL: 1})
		return err
	},
}

// takenBack are the commands that revert lasting ones.
var takenBack = map[string]func(context.Context, *grpc.ClientConn) error{
	etcdchaos.AdminCorrupt: disarm,
	etcdchaos.AdminDowngrade: func(ctx context.Context, line *grpc.ClientConn) error {
		err := downgrade(ctx, line, pb.DowngradeRequest_CANCEL, "")
		if err != nil && strings.Contains(err.Error(), "no inflight downgrade") {
			return nil
		}
		return err
	},
	etcdchaos.AdminAuthenticate: func(ctx context.Context, line *grpc.ClientConn) error {
		auth := pb.NewAuthClient(line)
		token, err := auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: "root", Password: "chaos"})
		if err != nil {
			if strings.Contains(err.Error(), "not enabled") {
				return nil
			}
			return err
		}
		_, err = auth.AuthDisable(metadata.AppendToOutgoingContext(ctx, "token", token.Token), &pb.AuthDisableRequest{})
		return err
	},
}

func disarm(ctx context.Context, line *grpc.ClientConn) error {
	alarms, err := pb.NewMaintenanceClient(line).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET})
	for _, a := range alarms.GetAlarms() {
		_, failed := pb.NewMaintenanceClient(line).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: a.MemberID, Alarm: a.Alarm})
		err = errors.Join(err, failed)
	}
	return err
}

func downgrade(ctx context.Context, line *grpc.ClientConn, action pb.DowngradeRequest_DowngradeAction, version string) error {
	_, err := pb.NewMaintenanceClient(line).Downgrade(ctx, &pb.DowngradeRequest{Action: action, Version: version})
	return err
}

// olderMinor is the minor release before that of the version, such as 3.5.0 of 3.6.1.
func olderMinor(version string) string {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); n < 2 {
		return version // which etcd refuses
	}
	return fmt.Sprintf("%d.%d.0", major, minor-1)
}

// steal gives a member the URL of another one, which etcd refuses.
func steal(o order) error {
	for _, m := range o.members {
		if m.ID != o.target.ID && len(m.PeerURLs) > 0 {
			return o.readdress(m.PeerURLs[0])
		}
	}
	return fmt.Errorf("there is no other member: %w", does.ErrNothing)
}

func (o order) url() string { return o.target.PeerURLs[0] }

func (o order) voters() int {
	n := 0
	for _, m := range o.members {
		if !m.IsLearner {
			n++
		}
	}
	return n
}

func (o order) readdress(url string) error {
	_, err := pb.NewClusterClient(o.line).MemberUpdate(o.ctx, &pb.MemberUpdateRequest{ID: o.target.ID, PeerURLs: []string{url}})
	return err
}

func (o order) add(learner bool) error {
	if !learner && o.voters() < 3 {
		return errTooFew
	}
	_, err := pb.NewClusterClient(o.line).MemberAdd(o.ctx, &pb.MemberAddRequest{PeerURLs: []string{"http://stray.invalid:2380"}, IsLearner: learner})
	return err
}

func removeMember(o order) error {
	if !o.target.IsLearner && o.voters() < 3 {
		return errTooFew
	}
	_, err := pb.NewClusterClient(o.line).MemberRemove(o.ctx, &pb.MemberRemoveRequest{ID: o.target.ID})
	if err == nil {
		o.removed(o.target.ID)
	}
	return err
}

func moveLeader(o order) error {
	for _, m := range o.members {
		if m.ID != o.at.Leader && !m.IsLearner {
			_, err := pb.NewMaintenanceClient(o.line).MoveLeader(o.ctx, &pb.MoveLeaderRequest{TargetID: m.ID})
			return err
		}
	}
	return errTooFew
}

func promote(o order) error {
	for _, m := range o.members {
		if m.IsLearner {
			_, err := pb.NewClusterClient(o.line).MemberPromote(o.ctx, &pb.MemberPromoteRequest{ID: m.ID})
			return err
		}
	}
	return fmt.Errorf("no learner: %w", does.ErrNothing)
}

func raise(o order, alarm pb.AlarmType) error {
	_, err := pb.NewMaintenanceClient(o.line).Alarm(o.ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: o.at.Header.MemberId, Alarm: alarm})
	return err
}

func authenticate(o order) error {
	auth := pb.NewAuthClient(o.line)
	if _, err := auth.UserAdd(o.ctx, &pb.AuthUserAddRequest{Name: "root", Password: "chaos"}); err != nil {
		return err
	}
	if _, err := auth.UserGrantRole(o.ctx, &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}); err != nil {
		return err
	}
	_, err := auth.AuthEnable(o.ctx, &pb.AuthEnableRequest{})
	return err
}
