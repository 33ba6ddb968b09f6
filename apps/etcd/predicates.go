package etcd

import (
	"slices"

	"github.com/governor-dev/governor/lifecycle"
)

// maxLag is how far behind the leader's log a serving member may be. It limits the effect of a
// member that reports a wrong health.
const maxLag = 5000

func voter(m Member) bool        { return m.Role == Voter }
func learner(m Member) bool      { return m.Role == Learner }
func listed(m Member) bool       { return m.Role != Outside }
func ours(m Member) bool         { return !m.Unmanaged }
func inKube(m Member) bool       { return m.Set.Exists || m.Volume.Exists }
func mayBootstrap(m Member) bool { return m.Bootstrap != BootstrapDisabled }
func unmanaged(m Member) bool    { return m.Unmanaged && listed(m) }

// dataLost reports that the member has lost its data. A StatefulSet is created after its volume,
// so a StatefulSet without one has lost it; the volume is never created again under the same
// name. No other pod can use a doomed one.
func dataLost(m Member) bool {
	has := m.Volume.Exists && (!m.Volume.doomed() || holdsVolume(m.Pod))
	return m.Volume.Lost || ours(m) && !has && (m.Joined || m.Set.Exists)
}

// claimTerminating reports that the member has its data only as long as its present pod exists.
// It counts and serves, and is replaced before its pod is deleted.
func claimTerminating(m Member) bool {
	doomed := m.Volume.doomed() && (m.Volume.Terminating || holdsVolume(m.Pod))
	return ours(m) && doomed && !dataLost(m)
}

// doomed reports that the volume lasts only as long as its present pod.
func (v Volume) doomed() bool { return v.Terminating || v.Unbound || v.Earlier }

// OfUser reports that the claim of the name is a user's.
func (v Volume) OfUser() bool { return v.Earlier || v.Restored }

// holdsVolume reports whether the pod keeps a deleted claim from disappearing. A pod without a
// node does not (pkg/controller/volume/pvcprotection, podUsesPVC).
func holdsVolume(p Pod) bool { return p.Exists && !p.Ended && p.Node != "" }

// serving requires two independent facts: the member's own answer, and the kubelet's probe. An
// unmanaged member has no known pod.
func (w World) serving(m Member) bool {
	return m.Health == Healthy && !dataLost(m) && m.Index+maxLag >= w.index() &&
		(m.Unmanaged || w.ready(m) && !m.Pod.Leaving)
}

// ready is the kubelet's result. While the alarm CORRUPT is raised, no pod is ready that an older
// operator created: its probe does not exclude the alarm.
func (w World) ready(m Member) bool {
	return m.Pod.Ready || m.Pod.Exists && m.Pod.Trouble == lifecycle.PodProblemNone && m.Pod.OtherContainer == "" && w.corrupt()
}

// index is the leader's index, otherwise the highest one.
func (w World) index() uint64 {
	var furthest uint64
	for _, m := range w.Members {
		if m.Leads {
			return m.Index
		}
		furthest = max(furthest, m.Index)
	}
	return furthest
}

func (w World) count(is func(Member) bool) int {
	n := 0
	for _, m := range w.Members {
		if is(m) {
			n++
		}
	}
	return n
}

// find returns the first member that satisfies the predicate.
func (w World) find(is func(Member) bool) (Member, bool) {
	if i := slices.IndexFunc(w.Members, is); i >= 0 {
		return w.Members[i], true
	}
	return Member{}, false
}

// each takes the step for the first such member, and has the others behind it: while the step is
// stuck, theirs go on.
func (w World) each(is func(Member) bool, step func(Member) lifecycle.Step) lifecycle.Decision {
	var all []lifecycle.Decision
	for _, m := range w.Members {
		if is(m) {
			all = append(all, lifecycle.Proceed(step(m)))
		}
	}
	return lifecycle.Any(all...)
}

// last returns the last, and thus newest, member that satisfies the predicate.
func (w World) last(is func(Member) bool) (found Member, ok bool) {
	for _, m := range w.Members {
		if is(m) {
			found, ok = m, true
		}
	}
	return found, ok
}

func (w World) named(name string) (Member, bool) {
	return w.find(func(m Member) bool { return m.Name == name })
}

func (w World) leader() (Member, bool) {
	return w.find(func(m Member) bool { return m.Leads && listed(m) })
}

// unexposed reports that the client Service does not select the member's pod, now or after it is
// recreated.
func unexposed(m Member) bool {
	return m.Set.Exists && m.Set.Exposure != Exposed || m.Pod.Exists && !m.Pod.Leaving && m.Pod.Exposure != Exposed
}

func (w World) servingVoter(m Member) bool { return voter(m) && w.serving(m) }

// answeringVoter reports that the voter takes part in etcd's quorum, whether its pod is ready or
// not: a sidecar may keep it from being ready.
func (w World) answeringVoter(m Member) bool {
	return voter(m) && m.Health == Healthy && !dataLost(m) && !m.Pod.Leaving && m.Index+maxLag >= w.index()
}

// quorum is the number of voters that must agree.
func (w World) quorum() int { return w.count(voter)/2 + 1 }

// missing is how many serving voters a quorum lacks. A cluster of one or two has none to spare,
// so a planned restart that keeps the data does not count: its user accepts the interruption.
// Nor does the restart without which the members would refuse each other forever; see
// authorityMismatch.
func (w World) missing() int { return w.short(w.servingVoter) }

// short is how many voters with the property a quorum lacks.
func (w World) short(is func(Member) bool) int {
	present := w.count(func(m Member) bool {
		return is(m) || voter(m) && (w.count(voter) <= 2 && m.Restarting || m.Crossing)
	})
	if _, restarts := w.find(func(m Member) bool { return m.Restarting }); w.count(voter) == 0 && restarts {
		return 0 // it keeps its data, and is not known to break a quorum
	}
	if w.count(voter) == 0 {
		return 2 // worse than one voter that is down: it can come back
	}
	return max(0, w.quorum()-present)
}

// change returns the world with the named member changed, and without members that neither
// system has any more.
func (w World) change(name string, edit func(*Member)) World {
	w.Members = slices.Clone(w.Members)
	i := slices.IndexFunc(w.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		i = w.place(name)
		w.Members = slices.Insert(w.Members, i, Member{Name: name})
	}
	edit(&w.Members[i])
	w.Members = slices.DeleteFunc(w.Members, func(m Member) bool { return !listed(m) && !inKube(m) })
	return w
}

// place is the position of a new member: after the managed members, before unmanaged ones.
func (w World) place(name string) int {
	return w.count(func(m Member) bool { return !m.Unmanaged && Number(m.Name) < Number(name) })
}
