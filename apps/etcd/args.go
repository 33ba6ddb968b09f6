package etcd

import (
	"maps"
	"strconv"
	"strings"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Steps declares all steps and waits of the planner, with their arguments.
func Steps() []lifecycle.StepType {
	return []lifecycle.StepType{
		{Name: FormCluster, Args: formArgs{}},
		{Name: StartMember, Class: lifecycle.ClassIrreversible, Args: startArgs{}}, // with a later release, whose data an earlier one cannot read
		{Name: AddLearner, Class: lifecycle.ClassDisruptive, Args: addArgs{}},
		{Name: AddVoter, Args: addArgs{}},
		{Name: Promote, Args: idArgs{}},
		{Name: AddToService},
		{Name: RemoveFromService, Class: lifecycle.ClassDisruptive},
		{Name: RewriteMemberEntry, Args: entryArgs{}},
		{Name: UpdatePeerURL, Args: entryArgs{}},
		{Name: MoveLeader, Class: lifecycle.ClassDisruptive, Args: moveArgs{}},
		{Name: RemoveMember, Class: lifecycle.ClassIrreversible, Args: removeArgs{}}, // the last member of a release, if it has no volume
		{Name: DeleteMember, Class: lifecycle.ClassDestructive, Args: deleteArgs{}},
		{Name: SetRetention, Args: retentionArgs{}},
		{Name: DeleteCluster, Class: lifecycle.ClassIrreversible, Args: retentionArgs{}},
		{Name: Restart, Class: lifecycle.ClassIrreversible, Args: restartArgs{}}, // with a later release
		{Name: StartTrial, Class: lifecycle.ClassDisruptive, Args: restartArgs{}},
		{Name: DeleteTrial},
		{Name: Disarm, Args: alarmArgs{}},
		{Name: GrowVolume, Args: GrowArgs{}},
		{Name: RestoreStatefulSet, Args: templateArgs{}},
		{Name: LabelPod},
		{Name: LabelVolume},
		{Name: KeepVolume},
		{Name: ConfigureNetworkPolicy, Class: lifecycle.ClassDisruptive},
		{Name: Formed, Wait: true},
		{Name: Serving, Wait: true},
		{Name: CaughtUp, Wait: true},
		{Name: QuorumBack, Wait: true},
		{Name: BootstrapConfigWritten, Wait: true, Args: bootstrapArgs{}},
		{Name: TrialPassed, Wait: true, Args: restartArgs{}},
		{Name: SnapshotTaken, Wait: true},
		{Name: AuthoritySigns, Wait: true},
		{Name: AuthorityDropped, Wait: true},
	}
}

// templateArgs are the inputs of a member's pod besides the spec.
type templateArgs struct {
	Version   string    `json:"version"`
	Revision  string    `json:"revision"`
	Exposed   Exposure  `json:"exposed"`
	Snapshots Snapshots `json:"snapshots,omitempty"`
}

// startArgs have the size, in bytes, and the retention of a new volume.
type startArgs struct {
	templateArgs
	Size      int64            `json:"size,omitempty"`
	Retention etcdv1.Retention `json:"retention,omitempty"`
}

type formArgs struct {
	startArgs
	Members names `json:"members"`
}

// restartArgs have the budget "over" if the pod is deleted regardless of the disruption budget.
type restartArgs struct {
	templateArgs
	Budget string `json:"budget,omitempty"`
}

// addArgs are the arguments of AddLearner and AddVoter.
type addArgs struct {
	PeerURL string `json:"peerURL"`
}

type idArgs struct {
	ID MemberID `json:"id"`
}

// entryArgs are the arguments of RewriteMemberEntry and UpdatePeerURL.
type entryArgs struct {
	ID      MemberID `json:"id"`
	PeerURL string   `json:"peerURL"`
}

// moveArgs are the arguments of MoveLeader.
type moveArgs struct {
	ID   MemberID `json:"id"`
	From MemberID `json:"from"`
}

// removeArgs have the retention Delete if the member's claim is deleted afterwards.
type removeArgs struct {
	ID        MemberID         `json:"id"`
	Retention etcdv1.Retention `json:"retention,omitempty"`
}

// deleteArgs have the retention Retain if the volume stays.
type deleteArgs struct {
	Retention etcdv1.Retention `json:"retention,omitempty"`
}

type retentionArgs struct {
	Retention etcdv1.Retention `json:"retention"`
}

type alarmArgs struct {
	ID    MemberID `json:"id"`
	Alarm string   `json:"alarm"`
}

// GrowArgs are the arguments of GrowVolume.
type GrowArgs struct {
	// Size in bytes.
	Size int64 `json:"size"`
}

type bootstrapArgs struct {
	Bootstrap BootstrapMode `json:"bootstrap"`
}

// Keys of arguments. OverBudget is the value of ArgBudget for deleting a pod regardless of the
// disruption budget.
const (
	ArgVersion   = "version"
	ArgRevision  = "revision"
	ArgID        = "id"
	ArgFrom      = "from"
	ArgPeerURL   = "peerURL"
	ArgBudget    = "budget"
	ArgExposed   = "exposed"
	ArgRetention = "retention"
	ArgAlarm     = "alarm"
	OverBudget   = "over"
	// ArgSnapshots is absent if the member uses the usual snapshot count.
	ArgSnapshots = "snapshots"
)

// MemberID is an ID of a member of etcd. It is hexadecimal as text, as in etcdctl.
type MemberID uint64

// String is the ID as text.
func (id MemberID) String() string { return hex(uint64(id)) }

// MarshalText implements encoding.TextMarshaler.
func (id MemberID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *MemberID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*id = MemberID(n)
	return err
}

func hex(id uint64) string { return strconv.FormatUint(id, 16) }

// names are separated by commas as text.
type names []string

// MarshalText implements encoding.TextMarshaler.
func (n names) MarshalText() ([]byte, error) { return []byte(strings.Join(n, ",")), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *names) UnmarshalText(text []byte) error {
	*n = strings.Split(string(text), ",")
	return nil
}

// overBudget makes the restart delete the pod regardless of the disruption budget.
func overBudget(s lifecycle.Step) lifecycle.Step {
	s.Args = maps.Clone(s.Args)
	s.Args[ArgBudget] = OverBudget
	return s
}
