package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// State is how an instance is, as Kubernetes shows it.
type State struct {
	// OptedIn reports that the namespace permits experiments.
	OptedIn bool
	// Deleting and Paused report that the instance is being deleted or not acted on.
	Deleting, Paused bool
	// Ready, Reason and Message are those of the condition Ready.
	Ready           bool
	Reason, Message string
	// Changing reports that the operator carries out a change or has not seen one yet.
	Changing bool
	// Held are sentences about policies that permit no disruption or no repair now.
	Held []string
	// KeepsDrift reports that a policy leaves as they are what others change.
	KeepsDrift bool
	// Pods are those of the instance that have not ended.
	Pods []Pod
	// Kept are the identities that must survive an experiment: the UID of each
	// PersistentVolumeClaim, and the ID of each member that the status names.
	Kept map[string]string
	// Budget reports that the instance has a PodDisruptionBudget; MinReady is how many pods
	// must stay ready by it.
	Budget   bool
	MinReady int
}

// Pod is a pod of an instance.
type Pod struct {
	Name, UID string
	Ready     bool
	// Volatile reports that data may go with the pod: it has no volume, and is not one of
	// the pods of a Deployment, which keep no data.
	Volatile bool
}

// Serving is how many pods are ready.
func (s State) Serving() int {
	n := 0
	for _, p := range s.Pods {
		if p.Ready {
			n++
		}
	}
	return n
}

// Unfit says why no manipulation may begin now; empty if one may.
func (s State) Unfit() string {
	switch {
	case s.Paused:
		return "it is paused"
	case s.Changing:
		return "a change is under way"
	case !s.Ready:
		return strings.TrimSpace("it is not Ready: " + s.Reason + " " + s.Message)
	case len(s.Held) > 0:
		return strings.Join(s.Held, "; ")
	case s.Serving() < len(s.Pods):
		return fmt.Sprintf("%d of its %d pods are ready", s.Serving(), len(s.Pods))
	}
	return ""
}

// Ended says why no manipulation can begin any more; empty if one can.
func (s State) Ended() string {
	switch {
	case !s.OptedIn:
		return "its namespace does not permit experiments any more"
	case s.Deleting:
		return "it is being deleted"
	}
	return ""
}

// Objection says why the manipulation must not be done to the instance; empty if it may.
func (s State) Objection(m chaos.Manipulation) string {
	volatile := slices.ContainsFunc(s.Pods, func(p Pod) bool { return p.Volatile })
	takesPod := m.Takes == chaos.PartPod || m.Verb == chaos.VerbIsolate
	switch {
	case !m.Safe || m.All || m.DestroysCopy(volatile):
		return "it may destroy a copy of the data"
	case takesPod && s.Budget && s.Serving()-1 < s.MinReady:
		return "the PodDisruptionBudget permits no pod to be away"
	case takesPod && !s.Budget && s.Serving() < 2:
		return "no other pod serves meanwhile"
	case !takesPod && s.KeepsDrift:
		return "a policy leaves as they are what others change"
	}
	return ""
}

// violation says which promise is broken by the state after a manipulation that began in
// the state before; empty if none is.
func (s State) violation(before State) string {
	if before.Budget && s.Serving() < before.MinReady {
		return fmt.Sprintf("%d of its %d pods are ready, and its PodDisruptionBudget requires %d", s.Serving(), len(s.Pods), before.MinReady)
	}
	return ""
}

// recovered reports whether the instance serves again as it did before.
func (s State) recovered(before State) bool {
	return s.Ready && !s.Changing && s.Serving() >= before.Serving() && s.Serving() == len(s.Pods)
}

// lost names what the state before had and this one lacks, or has with another identity. What
// was added is no loss.
func (s State) lost(before State) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(before.Kept)) {
		switch id, there := s.Kept[name]; {
		case !there:
			all = append(all, name)
		case id != before.Kept[name]:
			all = append(all, name+" (another one has its name)")
		}
	}
	return all
}
