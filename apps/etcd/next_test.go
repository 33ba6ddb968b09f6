package etcd_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// page is one test case: a world and the expected decision as printed by lifecycle.Decision, with
// outcome, step and reason.
type page struct {
	reason string
	want   *etcdv1.EtcdCluster
	seen   scene
	says   string
}

func TestNext(t *testing.T) {
	pages := map[string]page{}
	for _, chapter := range []map[string]page{begins(), grows(), shrinks(), heals(), loses(), byUsers(), besideEtcd(), changes(), pending(), removals(), ends()} {
		for name, p := range chapter {
			if _, twice := pages[name]; twice {
				t.Fatalf("two pages %s", name)
			}
			pages[name] = p
		}
	}
	for name, p := range pages {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(p.want, p.seen.World, noon)
			if got := strings.SplitN(d.String(), ":", 2)[0]; got != p.says || d.Message == "" {
				t.Errorf("%s:\n got %s\nwant %s", p.reason, d, p.says)
			}
		})
	}
}

func begins() map[string]page {
	nameless := wanted(3)
	nameless.Status.Bootstrap = nil
	typo := wanted(3)
	typo.Spec.Version = "3.66"
	fixed := wanted(1)
	fixed.Spec.Pod.PriorityClassName = "corrected"
	up := func(m *etcd.Member) { *m = whole(0, etcd.Newest); m.ID, m.Role, m.Joined = 0, "", false }
	alone := scene{etcd.World{ClusterID: 1}}.with("e-0", up)
	half := scene{}.with("e-0", func(m *etcd.Member) { m.Volume.Exists = true })
	claimless := alone.with("e-0", trouble(lifecycle.PodProblemUnschedulable, time.Hour)).
		with("e-0", func(m *etcd.Member) { m.Volume, m.Bootstrap = etcd.Volume{}, etcd.BootstrapCluster })
	claimless.ClusterID = 0
	ended := scene{}.with("e-0", func(m *etcd.Member) { up(m); m.Pod.Ended, m.Pod.Ready = true, false })
	return map[string]page{
		"Nameless":        {"names and token are recorded before anything is created", nameless, scene{}, "Retry ChoosingIdentity"},
		"First":           {"the first members start, all at once", wanted(3), scene{}, "Proceed FormCluster e (Bootstrapping)"},
		"OneStarted":      {"a crash between two of them is finished", wanted(3), alone, "Proceed FormCluster e (Bootstrapping)"},
		"HalfStarted":     {"a crash between volume and StatefulSet is finished", wanted(1), half, "Proceed FormCluster e (Bootstrapping)"},
		"Forming":         {"a member that answers is no cluster (sim seed 58)", wanted(1), alone.with("e-0", notReady), "Wait Formed e (Forming)"},
		"FormingUnseen":   {"a member whose probe succeeds is one", wanted(1), alone, "Wait QuorumBack e (QuorumAway)"},
		"EndedEarly":      {"a pod may end before there is a cluster (sim seed 2349)", wanted(1), ended, "Proceed Restart e-0 (PodEnded)"},
		"Typo":            {"a version that does not exist starts nothing", typo, scene{}, "Blocked UnknownVersion"},
		"NoSecret":        {"nor do pods whose Secrets are not there", wanted(3), scene{etcd.World{Certificates: "Secret x is missing."}}, "Blocked CertificatesUnusable"},
		"NoImage":         {"a missing image is reported", wanted(1), alone.with("e-0", trouble(lifecycle.PodProblemImagePullBackOff, time.Hour)), "Blocked ImagePullBackOff"},
		"Corrected":       {"a corrected spec is taken at once", fixed, alone.with("e-0", trouble(lifecycle.PodProblemImagePullBackOff, time.Hour)), "Proceed Restart e-0 (SpecCorrected)"},
		"ClaimGone":       {"a claim that was deleted while the cluster forms is created again", told(wanted(1), scene{}), claimless, "Proceed FormCluster e (Bootstrapping)"},
		"ClaimGoneAnswer": {"not once a member has formed a cluster", told(wanted(1), scene{}), scene{etcd.World{ClusterID: 1, Members: claimless.Members}}, "Blocked Unschedulable"},
		"ClaimGoneShut":   {"nor if it may not start without data", told(wanted(1), scene{}), claimless.with("e-0", func(m *etcd.Member) { m.Bootstrap = etcd.BootstrapDisabled }), "Blocked Unschedulable"},
		"Settled":         {"all serve", wanted(3), serving(3), "Settled AsDeclared"},
		"Unpublished":     {"a member that serves, but has not published its URLs, may still start empty (sim seed 9598)", wanted(3), serving(3).with("e-2", func(m *etcd.Member) { m.Joined, m.Bootstrap = false, etcd.BootstrapCluster }), "Wait Serving e-2 (MemberNotServing)"},
	}
}

// resized is a cluster that began with three members.
func resized(size int32) *etcdv1.EtcdCluster {
	c := wanted(3)
	c.Spec.Size = size
	return c
}

// unheard adds a learner that is ready in Kubernetes, and has not served clients for so long.
func unheard(s scene, ago time.Duration) scene {
	return s.with("e-3", func(m *etcd.Member) {
		*m = whole(3, etcd.Newest)
		down(ago)(m)
		m.Role, m.Pod.Ready = etcd.Learner, true
	})
}

func grows() map[string]page {
	old := serving(3).with("e-3", func(m *etcd.Member) { m.Role, m.ID, m.Bootstrap = etcd.Learner, 4, etcd.BootstrapJoin })
	begun := old.with("e-3", func(m *etcd.Member) {
		m.Set, m.Volume = whole(3, etcd.Newest).Set, etcd.Volume{Exists: true, Size: 8 << 30}
		m.Pod = etcd.Pod{Exists: true, Revision: m.Set.Revision, Version: etcd.Newest}
	})
	copying := begun.with("e-3", func(m *etcd.Member) { m.Joined, m.Health, m.Index, m.Version = true, etcd.Healthy, 500, etcd.Newest })
	ready := copying.with("e-3", func(m *etcd.Member) { m.Bootstrap, m.Index = etcd.BootstrapDisabled, 950 })
	v33 := scene{etcd.World{Listed: true}}.with("e-0", func(m *etcd.Member) { *m = whole(0, "3.3.25") })
	two := resized(2)
	two.Spec.Version = "3.3"
	three := wanted(3)
	three.Spec.Version = "3.3"
	return map[string]page{
		"TooFew":        {"a learner joins", resized(5), serving(3), "Proceed AddLearner e-3 (TooFewMembers)"},
		"HalfAdded":     {"a crash between etcd and Kubernetes is finished", resized(5), old, "Proceed StartMember e-3 (MemberAdded)"},
		"Starting":      {"Governor waits for the learner", resized(5), begun, "Wait CaughtUp e-3 (LearnerCatchingUp)"},
		"BootstrapOpen": {"once it has started it may never start empty again", resized(5), copying, "Wait BootstrapConfigWritten e-3 (SecuringIdentity)"},
		"Copying":       {"half of the log is not enough", resized(5), copying.with("e-3", func(m *etcd.Member) { m.Bootstrap = etcd.BootstrapDisabled }), "Wait CaughtUp e-3 (LearnerCatchingUp)"},
		"Promote":       {"nine tenths are", resized(5), ready, "Proceed Promote e-3 (LearnerCaughtUp)"},
		"InSync":        {"a read by the kubelet is enough, because the others are a quorum without it", resized(5), unheard(serving(3), time.Second), "Proceed Promote e-3 (LearnerCaughtUp)"},
		"InSyncAlone":   {"but not if the quorum depends on it", resized(2), unheard(serving(1), time.Second), "Wait CaughtUp e-3 (LearnerCatchingUp)"},
		"InSyncOld":     {"before 3.5 the kubelet only connects", resized(5), unheard(serving(3), time.Second).with("e-3", func(m *etcd.Member) { m.Pod.Version = "3.4.23" }), "Wait CaughtUp e-3 (LearnerCatchingUp)"},
		"Mute":          {"a member with all data that serves no clients needs an entry", resized(2), unheard(serving(1), 15*time.Second), "Proceed RewriteMemberEntry e-3 (MemberUnpublished)"},
		"MuteNotReady":  {"a member without all data needs time", resized(2), unheard(serving(1), 15*time.Second).with("e-3", func(m *etcd.Member) { m.Pod.Ready = false }), "Wait CaughtUp e-3 (LearnerCatchingUp)"},
		"MuteForLong":   {"a member that does not answer then is unreachable", resized(2), unheard(serving(1), time.Minute), "Wait CaughtUp e-3 (LearnerCatchingUp)"},
		"MuteAgain":     {"or the operator was down", resized(2), unheard(serving(1), 312*time.Second), "Proceed RewriteMemberEntry e-3 (MemberUnpublished)"},
		"AddToService":  {"the client Service selects serving voters", resized(5), serving(4).with("e-3", hidden), "Proceed AddToService e-3 (MemberServes)"},
		"ExposeOld":     {"an older operator exposed all members", wanted(3), serving(3).with("e-0", unlabelled), "Proceed AddToService e-0 (LabelMissing)"},
		"ExposeDrift":   {"a removed label is restored", wanted(3), serving(3).with("e-1", func(m *etcd.Member) { m.Pod.Exposure = etcd.Unlabelled }), "Proceed AddToService e-1 (LabelMissing)"},
		"ExposePod":     {"a crash came between two", wanted(3), serving(3).with("e-1", func(m *etcd.Member) { m.Pod.Exposure = etcd.Hidden }), "Proceed AddToService e-1 (MemberServes)"},
		"HiddenSilent":  {"a voter that does not serve yet is not exposed", resized(5), serving(4).with("e-3", hidden).with("e-3", down(time.Second)), "Wait Serving e-3 (MemberNotServing)"},
		"MuteVoter":     {"a voter that was away for long gets a snapshot too", wanted(3), serving(3).with("e-1", func(m *etcd.Member) { down(15 * time.Second)(m); m.Pod.Ready = true }), "Proceed RewriteMemberEntry e-1 (MemberUnpublished)"},
		"OutOfReach": {"an entry does not help a member on a failed node", wanted(3), serving(3).with("e-1", func(m *etcd.Member) {
			hidden(m)
			silenced(15 * time.Second)(m)
			m.Silence = "the node n2 is NotReady since 14:03 UTC"
		}), "Wait Serving e-1 (MemberNotServing)"},
		"NodeOff":          {"a member that served and went silent while its pod was ready may be on a node that is off", wanted(3), serving(3).with("e-1", silenced(15*time.Second)), "Wait Serving e-1 (MemberNotServing)"},
		"NodeOn":           {"unless Kubernetes would have noticed by now", wanted(3), serving(3).with("e-1", silenced(125*time.Second)), "Proceed RewriteMemberEntry e-1 (MemberUnpublished)"},
		"NotWanted":        {"an unwanted learner is removed", wanted(3), ready, "Proceed RemoveMember e-3 (LearnerNotWanted)"},
		"LearnerLost":      {"a learner without data is removed", resized(5), ready.with("e-3", lost), "Proceed RemoveMember e-3 (LearnerDead)"},
		"LearnerStuck":     {"a learner that a replacement would not help is reported", resized(5), begun.with("e-3", trouble(lifecycle.PodProblemUnschedulable, time.Hour)), "Blocked Unschedulable"},
		"LearnerNodeLost":  {"a learner whose volume is on a node that no longer exists is given up", resized(5), begun.with("e-3", trouble(lifecycle.PodProblemUnschedulable, time.Hour)).with("e-3", nodeLost), "Proceed RemoveMember e-3 (LearnerDead)"},
		"LearnerNodeBack":  {"after its time to return", resized(5), begun.with("e-3", trouble(lifecycle.PodProblemUnschedulable, time.Minute)).with("e-3", nodeLost), "Blocked Unschedulable"},
		"LearnerStuckDead": {"a learner that cannot join keeps no dead voter", resized(5), begun.with("e-3", trouble(lifecycle.PodProblemUnschedulable, time.Hour)).with("e-1", down(time.Hour)), "Proceed RemoveMember e-1 (MemberDead)"},
		"NoLearners":       {"before 3.4 a cluster of one cannot grow", two, v33, "Blocked GrowthNeedsLearners"},
		"VotersJoin":       {"and more join as voters", three, v33.with("e-1", func(m *etcd.Member) { *m = whole(1, "3.3.25") }), "Proceed AddVoter e-3 (TooFewMembers)"},
		"SickFirst":        {"no member joins while one is down", resized(5), serving(3).with("e-1", down(time.Second)), "Wait Serving e-1 (MemberNotServing)"},
		"NamesAreSpent":    {"a number is never reused", resized(4), serving(2).with("e-9", func(m *etcd.Member) { *m = whole(9, etcd.Newest) }), "Proceed AddLearner e-10 (TooFewMembers)"},
	}
}

// A new member that is only silent to clients has another message than an unavailable one.
func TestUnavailableMemberMessages(t *testing.T) {
	cases := map[string]struct {
		says string
		seen scene
	}{
		"FullDisk": {
			"e-1 does not serve: etcd ends again and again (Error, exit code 1): panic: no space left on device (its volume is full: raise spec.storage.size); Governor waits for it",
			serving(3).with("e-1", func(m *etcd.Member) {
				trouble(lifecycle.PodProblemCrashLoopBackOff, time.Second)(m)
				m.Pod.Detail = "etcd ends again and again (Error, exit code 1): panic: no space left on device"
			}),
		},
		"FirstEnd":  {"does not serve: etcd terminated: panic: no space left on device (", serving(3).with("e-1", down(time.Second)).with("e-1", func(m *etcd.Member) { m.Pod.LastWords = "panic: no space left on device" })},
		"NodeDown":  {"does not answer: the node n2 is NotReady since 14:03 UTC; Governor waits for it", serving(3).with("e-1", down(time.Second)).with("e-1", func(m *etcd.Member) { m.Silence = "the node n2 is NotReady since 14:03 UTC" })},
		"Away":      {"does not serve; Governor waits for it", serving(3).with("e-1", down(time.Second))},
		"New":       {"within seven seconds", serving(4).with("e-3", hidden).with("e-3", down(time.Second)).with("e-3", probed)},
		"NewAway":   {"does not serve; Governor waits for it", serving(4).with("e-3", hidden).with("e-3", down(time.Second))},
		"OldSilent": {"does not serve; Governor waits for it", serving(3).with("e-1", down(time.Second)).with("e-1", probed)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if d := (etcd.Planner{}).Next(resized(5), c.seen.World, noon); d.Step.Name != etcd.Serving || !strings.Contains(d.Message, c.says) {
				t.Errorf("%s: %s", d, d.Message)
			}
		})
	}
}

func probed(m *etcd.Member) { m.Pod.Ready = true }

func shrinks() map[string]page {
	newestLeads := serving(5).with("e-0", func(m *etcd.Member) { m.Leads = false }).with("e-4", func(m *etcd.Member) { m.Leads = true })
	gone := serving(3).with("e-3", func(m *etcd.Member) { *m = whole(3, etcd.Newest); removed(m) })
	unstarted := serving(5).with("e-4", func(m *etcd.Member) {
		*m = whole(4, etcd.Newest)
		down(time.Second)(m)
		m.Joined, m.Bootstrap = false, etcd.BootstrapCluster
	})
	shrunk := wanted(5)
	shrunk.Spec.Size = 3
	return map[string]page{
		"DoomedLeader": {"a leader whose data is about to be deleted is removed first, after a move of the leadership", wanted(3), serving(5).with("e-0", claimTerminating), "Proceed MoveLeader e-1 (TooManyMembers)"},
		"TooMany":      {"the newest is removed", wanted(3), serving(5), "Proceed RemoveMember e-4 (TooManyMembers)"},
		"NotLeader":    {"but not the leader", wanted(3), newestLeads, "Proceed RemoveMember e-3 (TooManyMembers)"},
		"SickGoes":     {"and an unhealthy one before the newest", wanted(3), serving(5).with("e-1", down(time.Second)), "Proceed RemoveMember e-1 (TooManyMembers)"},
		"NeverStarted": {"an initial member that never started is barred first (sim seed 37)", shrunk, unstarted, "Wait BootstrapConfigWritten e-4 (SecuringIdentity)"},
		"HalfRemoved":  {"a crash between etcd and Kubernetes is finished", wanted(3), gone, "Proceed DeleteMember e-3 (MemberRemoved)"},
		"OnlyVolume":   {"also if only the volume is left", wanted(3), gone.with("e-3", func(m *etcd.Member) { m.Set, m.Pod = etcd.Set{}, etcd.Pod{} }), "Proceed DeleteMember e-3 (MemberRemoved)"},
	}
}

func heals() map[string]page {
	corrupt := serving(3).with("e-2", func(m *etcd.Member) {
		trouble(lifecycle.PodProblemCrashLoopBackOff, time.Second)(m)
		m.Volume.Lost, m.Volume.Detail = true, "the log is corrupt"
	})
	byHand := serving(3).with("odd", func(m *etcd.Member) { m.Unmanaged, m.Role, m.ID = true, etcd.Learner, 99 })
	leads := serving(3).with("e-0", func(m *etcd.Member) { m.Leads = false }).with("odd", func(m *etcd.Member) {
		m.Unmanaged, m.Role, m.ID, m.Leads, m.Health, m.Index = true, etcd.Voter, 99, true, etcd.Healthy, 1000
	})
	noSet := serving(3).with("e-1", down(time.Second)).with("e-1", func(m *etcd.Member) { m.Set, m.Pod = etcd.Set{}, etcd.Pod{} })
	return map[string]page{
		"Down":          {"Governor waits for a failed member", wanted(3), serving(3).with("e-1", down(time.Minute)), "Wait Serving e-1 (MemberNotServing)"},
		"LongDown":      {"and replaced after five minutes", wanted(3), serving(3).with("e-1", down(6*time.Minute)), "Proceed RemoveMember e-1 (MemberDead)"},
		"HarmlessEdit":  {"without a drift policy it is reverted like any other", wanted(3), serving(3).with("e-1", annotated), "Proceed RestoreStatefulSet e-1 (StatefulSetEdited)"},
		"NeededEdit":    {"what the service depends on comes first", wanted(3), serving(3).with("e-0", annotated).with("e-1", func(m *etcd.Member) { m.Set.Edited = "spec.replicas" }), "Proceed RestoreStatefulSet e-1 (StatefulSetEdited)"},
		"ClockAhead":    {"a recorded time is by another clock, and this operator waits itself", wanted(3), serving(3).with("e-1", func(m *etcd.Member) { down(time.Hour)(m); m.Watched = noon.Add(-time.Minute) }), "Wait Serving e-1 (MemberNotServing)"},
		"ClockBehind":   {"a time in the future does not prolong the wait", wanted(3), serving(3).with("e-1", func(m *etcd.Member) { down(-time.Hour)(m); m.Watched = noon.Add(-time.Hour) }), "Proceed RemoveMember e-1 (MemberDead)"},
		"OnlyFuture":    {"nor does it end it", wanted(3), serving(3).with("e-1", down(-time.Hour)), "Wait Serving e-1 (MemberNotServing)"},
		"SeenByOthers":  {"but not while it is ready in Kubernetes", wanted(3), serving(3).with("e-1", func(m *etcd.Member) { m.Health, m.Since = etcd.Unknown, noon.Add(-time.Hour) }), "Wait Serving e-1 (MemberNotServing)"},
		"VolumeGone":    {"without its volume it is replaced at once", wanted(3), serving(3).with("e-2", lost), "Proceed RemoveMember e-2 (MemberDead)"},
		"Corrupt":       {"and with a corrupt one", wanted(3), corrupt, "Proceed RemoveMember e-2 (MemberDead)"},
		"BeforeChange":  {"before any change", resized(5), serving(3).with("e-2", lost), "Proceed RemoveMember e-2 (MemberDead)"},
		"Replacement":   {"then another joins", wanted(3), serving(2), "Proceed AddLearner e-3 (TooFewMembers)"},
		"EndedForever":  {"the node of the member rejects each of its pods", wanted(3), serving(3).with("e-1", down(time.Hour)).with("e-1", func(m *etcd.Member) { m.Watched, m.Pod.Ended, m.Pod.Since = noon.Add(-time.Hour), true, noon }), "Proceed RemoveMember e-1 (MemberDead)"},
		"EndedReturned": {"its node has just returned", wanted(3), serving(3).with("e-1", down(time.Hour)).with("e-1", func(m *etcd.Member) { m.Pod.Ended, m.Returned = true, noon }), "Proceed Restart e-1 (PodEnded)"},
		"Ended":         {"a terminated pod is recreated", wanted(3), serving(3).with("e-1", down(time.Second)).with("e-1", func(m *etcd.Member) { m.Pod.Ended = true }), "Proceed Restart e-1 (PodEnded)"},
		"NoSet":         {"a deleted StatefulSet is recreated", wanted(3), noSet, "Proceed StartMember e-1 (MemberAdded)"},
		"Unmanaged":     {"a member added by hand is removed", wanted(3), byHand, "Proceed RemoveMember odd (UnmanagedMember)"},
		"UnmanagedLead": {"after the leadership has moved", wanted(3), leads, "Proceed MoveLeader e-0 (UnmanagedLeader)"},
		"LooksFor":      {"an autoscaler gets its time", wanted(3), serving(3).with("e-1", trouble(lifecycle.PodProblemUnschedulable, time.Second)), "Wait Serving e-1 (Scheduling)"},
		"Alarm":         {"etcd's own alarm is reported", wanted(1), serving(1).with("e-0", func(m *etcd.Member) { m.Alarms = []string{"NOSPACE"} }), "Blocked AlarmRaised"},
		"Wrong":         {"a member that reports healthy but lags behind does not serve", wanted(3), serving(3).with("e-0", func(m *etcd.Member) { m.Index = 90000 }), "Wait Serving e-1 (MemberNotServing)"},
	}
}

func loses() map[string]page {
	three := func() *etcdv1.EtcdCluster { return told(wanted(3), serving(3)) }
	noSet := serving(3).silent().with("e-1", func(m *etcd.Member) { m.Set, m.Pod = etcd.Set{}, etcd.Pod{} })
	gone := func(m *etcd.Member) {
		trouble(lifecycle.PodProblemContainerCannotStart, time.Minute)(m)
		m.Volume.Earlier, m.Pod.Node = true, "n"
	}
	unmounted := serving(3).silent().with("e-0", gone).with("e-1", gone)
	newer := noSet.with("e-1", func(m *etcd.Member) { m.Volume.Version = "3.7.3" })
	fixed := told(wanted(1), serving(1))
	fixed.Spec.Pod.PriorityClassName = "corrected"
	return map[string]page{
		"AllDown":    {"with their data they only need to restart", three(), serving(3).silent(), "Wait QuorumBack e (QuorumAway)"},
		"OneLost":    {"also when one has lost its own", three(), serving(3).silent().with("e-0", lost), "Wait QuorumBack e (QuorumAway)"},
		"TwoLost":    {"two of three are too many: nothing is changed", three(), serving(3).silent().with("e-0", lost).with("e-1", lost), "Blocked QuorumLost"},
		"Unmounted":  {"claims were deleted under the pods, and their volumes with them", three(), unmounted, "Blocked QuorumLost"},
		"AllMissing": {"no second cluster starts when everything is lost", three(), scene{}, "Blocked QuorumLost"},
		"SetGone":    {"a StatefulSet is recreated without etcd (sim seed 41)", three(), noSet, "Proceed StartMember e-1 (StatefulSetMissing)"},
		"SetNewer":   {"with the version that it ran, whatever its claim says", three(), newer, "Proceed StartMember e-1 (StatefulSetMissing)"},
		"SpecFixed":  {"a single member takes a corrected spec", fixed, serving(1).silent().with("e-0", trouble(lifecycle.PodProblemCrashLoopBackOff, time.Hour)), "Proceed Restart e-0 (SpecCorrected)"},
		"NoNode":     {"the pods' problem is reported", three(), serving(3).silent().with("e-1", trouble(lifecycle.PodProblemUnschedulable, time.Hour)), "Blocked Unschedulable"},
	}
}

// byUsers are manual changes of Governor's objects.
func byUsers() map[string]page {
	three := func(s scene) *etcdv1.EtcdCluster { return told(wanted(3), s) }
	all := serving(3).with("e-0", claimTerminating).with("e-1", claimTerminating).with("e-2", claimTerminating)
	four := serving(4).with("e-0", claimTerminating).with("e-1", claimTerminating)
	last := serving(4).with("e-0", claimTerminating)
	zero := serving(3).silent().with("e-0", scaledToZero).with("e-1", scaledToZero).with("e-2", scaledToZero)
	other := serving(3).with("e-1", func(m *etcd.Member) { m.PeerURL = "http://e-1-0.e.ns.svc.cluster.local:2380" })
	odd := serving(2).with("e-2", func(m *etcd.Member) { *m = whole(2, etcd.Newest); down(time.Hour)(m); m.ID, m.Role = 0, "" }).
		with("f9", func(m *etcd.Member) {
			*m = etcd.Member{Name: "f9", ID: 0xf9, Unmanaged: true, Role: etcd.Voter, PeerURL: "http://x"}
		})
	doomedOrphan := serving(3).with("e-0", func(m *etcd.Member) { claimTerminating(m); m.Set = etcd.Set{} })
	doomedImage := serving(3).with("e-0", claimTerminating).with("e-2", func(m *etcd.Member) {
		trouble(lifecycle.PodProblemImagePullBackOff, time.Hour)(m)
		claimTerminating(m)
		m.Pod.Stale = true
	})
	claimStripped := serving(3).with("e-1", func(m *etcd.Member) { m.Volume.Stripped = true })
	stripped := serving(3).with("e-1", func(m *etcd.Member) { m.Pod.Stripped = true })
	return map[string]page{
		"ClaimsDeleted":   {"another joins first", three(all), all, "Proceed AddLearner e-3 (VolumeDeleted)"},
		"Replaced":        {"then a follower is removed", three(four), four, "Proceed RemoveMember e-1 (VolumeDeleted)"},
		"LeaderReplaced":  {"the leadership moves first", three(last), last, "Proceed MoveLeader e-1 (VolumeDeleted)"},
		"AllAndSmaller":   {"while no member lasts, a reduction waits for one that does (sim seed 6115)", told(wanted(1), all), all, "Proceed AddLearner e-3 (VolumeDeleted)"},
		"SmallerAgain":    {"then those whose data goes are removed", told(wanted(1), last), last.with("e-1", claimTerminating).with("e-2", claimTerminating), "Proceed RemoveMember e-2 (TooManyMembers)"},
		"AllScaledToZero": {"replicas are put back without a quorum", three(serving(3)), zero, "Proceed RestoreStatefulSet e-0 (StatefulSetEdited)"},
		"Respelled":       {"a member is known by its ID", three(serving(3)), other, "Proceed UpdatePeerURL e-1 (PeerURLChanged)"},
		"Unidentified":    {"a possible member is not removed", wanted(3), odd, "Blocked MemberUnidentified"},
		"ClaimStripped":   {"facts about a claim must not depend on its labels", three(serving(3)), claimStripped, "Proceed LabelVolume e-1 (LabelsMissing)"},
		"SharedID":        {"the copy must not outlive the original", three(serving(3)), scene{etcd.World{Shared: "e-0 and e-1 answer as the member f0", Listed: true, ClusterID: 0xc1, Members: serving(3).Members}}, "Blocked MembersShareID"},
		"Divided":         {"one side's list must not remove the other side", three(serving(3)), scene{etcd.World{Divided: "a says b; c says d", Members: serving(3).silent().Members}}, "Blocked MembersDivided"},
		"OtherID":         {"a snapshot was restored in place", three(serving(3)), scene{etcd.World{OtherID: 0xc2, Members: serving(3).silent().Members}}, "Blocked ClusterIDChanged"},
		"Earlier":         {"Kubernetes is about to delete or to orphan what an earlier cluster owns", wanted(3), scene{etcd.World{Earlier: true}}, "Retry PreviousStillDeleting"},
		"DoomedOrphan":    {"no other pod can use a claim that is being deleted: another member joins", three(doomedOrphan), doomedOrphan, "Proceed AddLearner e-3 (VolumeDeleted)"},
		"DoomedImage":     {"a pod with an edited image cannot start again on a claim that is being deleted, and holds the replacement of the others", three(doomedImage), doomedImage, "Proceed RemoveMember e-2 (MemberDead)"},
		"NameTaken":       {"an earlier cluster still serves", wanted(3), scene{etcd.World{Orphans: []string{"StatefulSet e-0"}}}, "Blocked NameTaken"},
		"Stripped":        {"the pod gets its labels again", three(serving(3)), stripped, "Proceed LabelPod e-1 (LabelsMissing)"},
	}
}

func changes() map[string]page {
	spec, upgrade, back, typo, jump, bigger, memory := wanted(3), wanted(3), wanted(3), wanted(3), wanted(3), wanted(3), wanted(3)
	spec.Spec.Pod.PriorityClassName = "high"
	upgrade.Spec.Version, back.Spec.Version, typo.Spec.Version, jump.Spec.Version = "3.7", "3.5", "3.9", "3.7"
	size := resource.MustParse("9Gi")
	bigger.Spec.Storage.Size = &size
	memory.Spec.Storage.Medium = etcdv1.MediumMemory
	memory.Spec.Pod.PriorityClassName = "high"
	renewed := func(m *etcd.Member) {
		m.Set.Revision, m.Pod.Revision = etcd.Revision(spec), etcd.Revision(spec)
	}
	followers := serving(3).with("e-1", renewed).with("e-2", renewed)
	v3521 := serving(3)
	for _, m := range v3521.Members {
		v3521 = v3521.with(m.Name, func(m *etcd.Member) { m.Version, m.Set.Version, m.Pod.Version = "3.5.21", "3.5.21", "3.5.21" })
	}
	failed := serving(3).with("e-1", renewed).with("e-1", trouble(lifecycle.PodProblemCrashLoopBackOff, time.Hour))
	cannot := serving(1).with("e-0", func(m *etcd.Member) { m.Volume.Problem = "the class does not allow it" })
	biggest := resized(1)
	biggest.Spec.Storage.Size = bigger.Spec.Storage.Size
	return map[string]page{
		"Follower":    {"followers are restarted first", spec, serving(3), "Proceed Restart e-1 (SpecChanged)"},
		"LeaderMoves": {"the leadership moves", spec, followers, "Proceed MoveLeader e-1 (SpecChanged)"},
		"LeaderLast":  {"and is restarted as a follower", spec, followers.with("e-0", func(m *etcd.Member) { m.Leads = false }).with("e-1", func(m *etcd.Member) { m.Leads = true }), "Proceed Restart e-0 (SpecChanged)"},
		"Upgrade":     {"a new version is a restart, too", upgrade, serving(3), "Proceed Restart e-1 (VersionChanged)"},
		"Back":        {"a minor release is not downgraded", back, serving(3), "Blocked VersionRefused"},
		"LaterTypo":   {"a typo in the version of a running cluster", typo, serving(3), "Blocked UnknownVersion"},
		"OneByOne":    {"3.5.21 must go by a sound 3.5 first", jump, v3521, "Proceed Restart e-1 (VersionChanged)"},
		"Halts":       {"a failing change stops at the first member", spec, failed, "Blocked ChangeFailed"},
		"Grow":        {"a volume grows", bigger, serving(3), "Proceed GrowVolume e-0 (VolumeTooSmall)"},
		"CannotGrow":  {"or the reason is reported", biggest, cannot, "Blocked VolumeCannotGrow"},
		"Authority":   {"a member that does not know a new authority is restarted before another joins", resized(5), trusting("new", "old"), "Proceed Restart e-1 (AuthoritiesChanged)"},
		"NotKnown":    {"temporarily unknown authorities restart no member", wanted(3), trusting("", "old"), "Settled AsDeclared"},
		"Trusted":     {"nor do the same", wanted(3), trusting("old", "old"), "Settled AsDeclared"},
		"InMemory":    {"without volumes a member is replaced, not restarted", memory, serving(3), "Proceed AddLearner e-3 (SpecChanged)"},
		"InMemory2":   {"the old one is removed when the new one votes", memory, serving(3).with("e-3", func(m *etcd.Member) { *m = whole(3, etcd.Newest); renewedMemory(m, memory) }), "Proceed RemoveMember e-1 (SpecChanged)"},
	}
}

// trusting members were created with other authorities.
func trusting(now, then string) scene {
	s := serving(3)
	for _, m := range s.Members {
		s = s.with(m.Name, func(m *etcd.Member) { m.Set.Revision += "." + then; m.Pod.Revision += "." + then })
	}
	s.Trust = now
	return s
}

func renewedMemory(m *etcd.Member, want *etcdv1.EtcdCluster) {
	m.Set.Revision, m.Pod.Revision = etcd.Revision(want), etcd.Revision(want)
}

func TestVersionOfStep(t *testing.T) {
	cases := map[string]struct {
		reason string
		page   page
		want   string
	}{
		"SoundFirst": {"the way from 3.5.21 to 3.7 begins within 3.5", changes()["OneByOne"], "3.5.35"},
		"NewestOf":   {"3.7 is its newest known release", changes()["Upgrade"], "3.7.3"},
		"SetNewer":   {"a recreated StatefulSet has the version that the member ran", loses()["SetNewer"], "3.6.16"},
		"SetSame":    {"which is mostly that of its claim", loses()["SetGone"], "3.6.16"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := etcd.Planner{}.Next(c.page.want, c.page.seen.World, noon)
			if got := d.Step.Args["version"]; got != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

func annotated(m *etcd.Member) {
	m.Set.Harmless = []string{"spec.template.metadata.annotations.example.com/note"}
}

// While harmless edits are only reported, each of them is, and all else goes on.
func TestHarmlessEditsMayStay(t *testing.T) {
	want := wanted(3)
	want.Spec.Size = 4
	seen := serving(3).with("e-0", annotated).with("e-2", annotated)
	d, spared := etcd.Planner{}.Next(told(want, seen), seen.World, noon).SpareDrift()
	var names []string
	for _, s := range spared {
		names = append(names, s.Kind+" "+s.Name)
	}
	if !slices.Equal(names, []string{"StatefulSet e-0", "StatefulSet e-2"}) {
		t.Errorf("reported are %q", names)
	}
	if d.Step.String() != "AddLearner e-3" || d.After == 0 {
		t.Errorf("then it takes %s, and looks again after %s", d, d.After)
	}
}
