package etcd

import (
	"strings"
	"time"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// failedChange gives the current spec to a member that cannot run and was created from another spec.
// That costs nothing, since the member does not serve. Without a volume the pod holds the data. Such
// a pod is recreated only if it never had data, or if it was created from an edited template and the
// others have a quorum (sim seed 3219). A member that will not return is replaced instead.
func failedChange(want desired, seen World, now time.Time) lifecycle.Decision {
	for _, m := range seen.Members {
		switch {
		case m.Health == Healthy || !m.Set.Exists || dataLost(m) || claimTerminating(m) || obstructed(m):
		case seen.Listed && lossCause(want, seen, m, now) != "":
		case m.cannotRun() && want.mayRecreate(seen, m) && (want.mismatches(m) || m.Pod.Stale):
			return lifecycle.Proceed(correction(want, seen, m, "%s could not run (%s); it starts with the current spec.", m.Name, m.trouble()))
		case want.canCorrect(seen, m) && want.silentTooLong(m, now) && m.Maintenance == "":
			return lifecycle.Proceed(correction(want, seen, m, "%s has not answered for %s, and no other member has its spec; it starts with the current one.", m.Name, want.replaceAfter()))
		}
	}
	return lifecycle.Decision{}
}

// cannotRun reports that Kubernetes cannot run or create the member's pod.
func (m Member) cannotRun() bool { return m.Pod.Trouble != lifecycle.PodProblemNone || m.uncreated() }

// uncreated reports that the API server rejects the member's pod.
func (m Member) uncreated() bool { return m.Set.Problem != "" && !m.Pod.Exists }

func (m Member) trouble() string {
	if m.uncreated() {
		return "Kubernetes cannot create its pod"
	}
	return string(m.Pod.Trouble)
}

// mayRecreate reports whether no data is lost with the pod.
func (g desired) mayRecreate(seen World, m Member) bool {
	crashes := m.Pod.Trouble == lifecycle.PodProblemCrashLoopBackOff
	replicated := seen.Listed && m.Pod.Stale && !crashes
	return !Volatile(g.EtcdCluster) || replicated || mayBootstrap(m) && !crashes
}

// silentTooLong reports that the member has not answered for so long that it is replaced.
func (g desired) silentTooLong(m Member, now time.Time) bool {
	silent := m.Health != Healthy && !m.Pod.Ready && !m.Since.IsZero()
	return silent && !now.Before(silentFrom(m, now).Add(g.replaceAfter()))
}

// canCorrect reports whether the current spec may help a silent member: its own is another one, which
// no other member has, and neither its node nor the lack of a quorum explains the silence.
func (g desired) canCorrect(seen World, m Member) bool {
	spec, v := runs(m)
	current, _, _ := strings.Cut(g.revision, ".")
	if spec == current && v == g.after(m).String() || !g.mismatches(m) {
		return false
	}
	if Volatile(g.EtcdCluster) || claimTerminating(m) || dataLost(m) || obstructed(m) || m.Silence != "" {
		return false
	}
	_, shared := seen.find(func(o Member) bool { return o.Name != m.Name && ours(o) && sameSpec(o, m) })
	return !shared && (seen.Listed || seen.count(func(o Member) bool { return o.Set.Exists }) == 1)
}

// worksElsewhere reports that another member serves with the member's spec and version: neither keeps
// the member from running.
func worksElsewhere(seen World, m Member) bool {
	_, ok := seen.find(func(o Member) bool { return o.Name != m.Name && ours(o) && seen.servingVoter(o) && sameSpec(o, m) })
	return ok
}

// sameSpec reports whether the pods of both members have the same spec and version. They may trust
// different authorities.
func sameSpec(a, b Member) bool {
	spec, v := runs(a)
	other, otherVersion := runs(b)
	return spec == other && v == otherVersion
}

// runs returns the spec and the version of the member's pod, or of the next one.
func runs(m Member) (spec, version string) {
	revision, version := m.Set.Revision, m.Set.Version
	if m.Pod.Exists {
		revision, version = m.Pod.Revision, m.Pod.Version
	}
	spec, _, _ = strings.Cut(revision, ".")
	return spec, version
}

// correction restarts the member with the current spec. It is a repair if the member's own spec may be
// what keeps it from running. Otherwise it carries out a change, which policies may hold.
func correction(want desired, seen World, m Member, format string, args ...any) lifecycle.Step {
	to := want.after(m)
	s := restart(want, m, to, "SpecCorrected", format, args...)
	if m.Pod.Stale || !worksElsewhere(seen, m) {
		s = repair(s)
	}
	return markIrreversible(want, seen, m, to, s)
}

// failedContainer restarts a member that answers, although a container that others added keeps its
// pod from being ready, once its template is another one. The others that answer have a quorum
// without it; in a cluster of one or two, a user who corrects the template accepts the interruption.
func failedContainer(want desired, seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool {
		fails := m.Pod.OtherContainer != "" && m.Pod.Trouble == lifecycle.PodProblemNone && !m.Pod.Ready && !m.Pod.Leaving
		return fails && ourListed(m) && m.Set.Exists && (want.mismatches(m) || m.Pod.Stale) && !dataLost(m) && !claimTerminating(m) && !obstructed(m)
	})
	others := seen.count(func(o Member) bool { return o.Name != m.Name && seen.answeringVoter(o) })
	if !ok || !seen.Listed || Volatile(want.EtcdCluster) || seen.count(voter) > 2 && others < seen.quorum() {
		return lifecycle.Decision{}
	}
	s := correction(want, seen, m, "The pod of %s was not ready (%s); it starts with the current template.", m.Name, m.Pod.OtherContainer)
	if d := refusedTemplate(want, seen, s); d.IsSet() {
		return d
	}
	return lifecycle.Proceed(s)
}

// AppliesChange is one of the [Abilities]: a step with a template gives it to a member that has another
// spec or version.
func (Planner) AppliesChange(_ *etcdv1.EtcdCluster, seen World, s lifecycle.Step) bool {
	m, ok := seen.named(s.Target)
	spec, _, _ := strings.Cut(s.Args[ArgRevision], ".")
	if !ok || spec == "" || !m.Set.Exists {
		return false
	}
	differs := func(revision, v string) bool { return revisionsDiffer(revision, spec) || v != s.Args[ArgVersion] }
	return differs(m.Set.Revision, m.Set.Version) || m.Pod.Exists && !m.Pod.Leaving && differs(m.Pod.Revision, m.Pod.Version)
}
