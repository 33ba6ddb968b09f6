package etcd

import (
	"fmt"
	"strings"
	"time"

	"github.com/governor-dev/governor/lifecycle"
)

// hindered reports what keeps the member's pod from running and how a person can help. It
// decides nothing if no problem is known.
func hindered(want desired, seen World, m Member, now time.Time) lifecycle.Decision {
	if m.Volume.Problem != "" && m.Volume.Pending && !m.Pod.Ready && m.Pod.Trouble == lifecycle.PodProblemUnschedulable {
		return lifecycle.Block("VolumeMissing", fmt.Sprintf(
			"The volume of %s is unavailable: %s; Kubernetes then provides the volume.", m.Name, m.Volume.Problem))
	}
	if obstructed(m) && !m.Pod.Exists && m.Volume.Exists {
		return reportObstacle(m)
	}
	if d := uncreated(want, seen, m); d.IsSet() {
		return d
	}
	if m.Pod.OtherContainer != "" {
		return lifecycle.Block(string(lifecycle.PodProblemContainerCannotStart), fmt.Sprintf("%s: %s. Governor does not declare this container. "+
			"Correct what adds it, e.g. an admission webhook, then delete the pod.", m.Name, m.Pod.OtherContainer))
	}
	blocked := func(reason, remedy string) lifecycle.Decision {
		said := fmt.Sprintf("%s: %s. %s", m.Name, m.Pod.Detail, remedy)
		if changeFailed(want, seen, m, now) {
			return lifecycle.Fail(reason, said)
		}
		d := lifecycle.Block(reason, said)
		d.Suspect = onlyEvidence(want, seen, m) && (m.Pod.Trouble != lifecycle.PodProblemUnschedulable || !now.Before(silentFrom(m, now).Add(want.replaceAfter())))
		return d
	}
	switch m.Pod.Trouble {
	case lifecycle.PodProblemImagePullBackOff:
		return blocked(string(lifecycle.PodProblemImagePullBackOff), "Correct spec.version, spec.repository or spec.image, or set spec.pod.imagePullSecrets.")
	case lifecycle.PodProblemContainerCannotStart:
		return blocked(string(lifecycle.PodProblemContainerCannotStart), "Correct spec.pod, spec.image or the node.")
	case lifecycle.PodProblemUnschedulable:
		if until := m.Pod.Since.Add(schedulingGrace); now.Before(until) {
			return await(Serving, m, m.Pod.Since, "Scheduling", "%s is not scheduled yet: %s.", m.Name, m.Pod.Detail).Until(until)
		}
		return blocked(string(lifecycle.PodProblemUnschedulable), schedulingRemedy(m))
	case lifecycle.PodProblemCrashLoopBackOff:
		if failsSinceChange(seen, m) {
			return blocked("ChangeFailed", "It has not run since its last change, and Governor changes no other member until it runs. Correct the spec.")
		}
		if causedBySpec(want, seen, m) || !formed(want.EtcdCluster, seen) {
			return blocked(string(lifecycle.PodProblemCrashLoopBackOff), "Correct spec.pod, or see its log with: kubectl logs --previous.")
		}
	}
	return lifecycle.Decision{}
}

func schedulingRemedy(m Member) string {
	if node := m.Volume.NodeLost; node != "" {
		return fmt.Sprintf("Its volume is on the node %s, which no longer exists. Restore that node with its disk.", node)
	}
	return "Add nodes, or change spec.pod or spec.storage."
}

// uncreated reports a pod that the API server rejects.
func uncreated(want desired, seen World, m Member) lifecycle.Decision {
	if !m.uncreated() {
		return lifecycle.Decision{}
	}
	if d := refusedTemplate(want, seen, restart(want, m, want.after(m), "", "")); d.IsSet() {
		return d
	}
	return lifecycle.Block("FailedCreate", fmt.Sprintf("Kubernetes cannot create the pod of %s: %s. "+
		"Raise the quota, or correct spec.pod or the admission policy; Kubernetes retries by itself.", m.Name, m.Set.Problem))
}

// changeFailed reports that the current spec causes the member's problem. A pod may be
// unschedulable for replaceAfter, because new nodes take time.
func changeFailed(want desired, seen World, m Member, now time.Time) bool {
	if m.Pod.Trouble == lifecycle.PodProblemUnschedulable && now.Before(silentFrom(m, now).Add(want.replaceAfter())) {
		return false
	}
	return causedByChange(want, seen, m)
}

// causedByChange reports that the member has the current spec, that others serve with another
// one, and that none serves with the same.
func causedByChange(want desired, seen World, m Member) bool {
	if !failsSinceChange(seen, m) || want.mismatches(m) {
		return false
	}
	_, works := seen.find(func(o Member) bool {
		return seen.servingVoter(o) && ours(o) && o.Pod.Revision == m.Pod.Revision && o.Pod.Version == m.Pod.Version
	})
	return !works
}

// onlyEvidence reports that the member has the current spec, and that no other member can show
// whether the spec is the cause of its problem. In a cluster of one or two, the first changed
// member breaks the quorum.
func onlyEvidence(want desired, seen World, m Member) bool {
	voters, _ := votersWithData(want.EtcdCluster, seen)
	if seen.Listed || len(voters) > 2 || !ours(m) || want.mismatches(m) {
		return false
	}
	_, another := seen.find(func(o Member) bool {
		same := o.Pod.Revision == m.Pod.Revision && o.Pod.Version == m.Pod.Version
		return o.Name != m.Name && ours(o) && (same || o.Pod.Trouble != lifecycle.PodProblemNone)
	})
	return !another
}

func hinderedAny(want desired, seen World, now time.Time) lifecycle.Decision {
	for _, m := range seen.Members {
		if d := hindered(want, seen, m, now); d.IsSet() {
			return d
		}
	}
	return lifecycle.Decision{}
}

// fatalMessages maps etcd's messages for unusable data to their meanings. Kubernetes keeps the
// last two kibibytes of the log. A panic's stack may fill them, so that only the name of the
// function that rejected the data is left.
var fatalMessages = []struct{ words, means string }{
	{"couldn't find local name", "the data directory is empty, or its log is missing"},
	{"crc mismatch", "the log is corrupt (crc mismatch)"},
	{"max entry size limit exceeded", "the log is corrupt"},
	{"tocommit(", "the log has lost entries"},
	{"raftLog).commitTo(", "the log has lost entries"},
	{"failed to recover v3 backend", "the database is missing or corrupt"},
	{"etcdserver.recoverSnapshot(", "the database is missing or corrupt"},
	{`"error":"invalid database"`, "the database is corrupt"},
	{"bbolt.(*DB).freepages(", "the database is corrupt"},
	{"freepages: failed to get all reachable pages", "the database is corrupt"},
	{"page already freed", "the database is corrupt"},
	{"snapshot file doesn't exist", "a snapshot is missing"},
	{"failed to find database snapshot file", "a snapshot is missing"},
	{"checkInitialHashKV", "its data differs from the other members'"},
}

// Diagnose derives the state of a member's data from etcd's last output, as Kubernetes keeps it
// in a container's termination message. It is empty if the output does not show the state.
func Diagnose(lastWords string) string {
	lastWords = fatalLines(lastWords)
	for _, e := range fatalMessages {
		if strings.Contains(lastWords, e.words) {
			return e.means
		}
	}
	return ""
}
