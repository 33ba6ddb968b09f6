package etcd

import (
	"fmt"
	"strings"

	"github.com/governor-dev/governor/lifecycle"
)

// whyAway says what is known of a member that does not serve: that its node is out of reach, or
// with what words etcd ends. It is empty if nothing is known.
func whyAway(m Member) string {
	switch {
	case m.Silence != "":
		return "does not answer: " + m.Silence
	case m.Pod.Trouble == lifecycle.PodProblemCrashLoopBackOff:
		return "does not serve: " + m.Pod.Detail + fullDisk(m.Pod.Detail)
	case m.Pod.LastWords != "":
		return "does not serve: etcd has ended: " + m.Pod.LastWords + fullDisk(m.Pod.LastWords)
	}
	return ""
}

// noSpaceLeft is ENOSPC in words.
const noSpaceLeft = "no space left on device"

// fullDisk is the way out if that is why etcd ends.
func fullDisk(words string) string {
	if strings.Contains(words, noSpaceLeft) {
		return " (its volume is full: raise spec.storage.size)"
	}
	return ""
}

// absences are the members of ours of which is known why they are away, a sentence each.
func absences(seen World) string {
	all := ""
	for _, m := range seen.Members {
		if why := whyAway(m); ours(m) && why != "" {
			all += fmt.Sprintf(" %s %s.", m.Name, why)
		}
	}
	return all
}
