package etcd

import (
	"fmt"
	"strings"

	"github.com/governor-dev/governor/lifecycle"
)

// unavailableReason describes why a member does not serve: its node is unreachable, or etcd
// terminates with a message. It is empty if the reason is unknown.
func unavailableReason(m Member) string {
	switch {
	case m.Volume.Unbound && !holdsVolume(m.Pod):
		return "does not answer: its PersistentVolume no longer exists"
	case m.Pod.HeldBy != "":
		return "does not answer: its pod is being deleted, and the finalizer " + m.Pod.HeldBy + " holds it"
	case m.Silence != "":
		return "does not answer: " + m.Silence
	case m.Pod.Trouble == lifecycle.PodProblemCrashLoopBackOff:
		return "does not serve: " + m.Pod.Detail + fullDiskRemedy(m.Pod.Detail)
	case m.Pod.LastWords != "":
		return "does not serve: etcd terminated: " + m.Pod.LastWords + fullDiskRemedy(m.Pod.LastWords)
	}
	return ""
}

// noSpaceLeft is the text of ENOSPC.
const noSpaceLeft = "no space left on device"

// fullDiskRemedy returns the remedy if a full volume terminates etcd.
func fullDiskRemedy(words string) string {
	if strings.Contains(words, noSpaceLeft) {
		return " (its volume is full: raise spec.storage.size)"
	}
	return ""
}

// unavailableMembers returns one sentence for each managed member that is unavailable for a
// known reason.
func unavailableMembers(seen World) string {
	all := ""
	for _, m := range seen.Members {
		if why := unavailableReason(m); ours(m) && why != "" {
			all += fmt.Sprintf(" %s %s.", m.Name, why)
		}
	}
	return all
}
