package etcd

import (
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
)

// Obstacle is an object that keeps a member from starting: it is being deleted and does not
// disappear, or its name is taken.
type Obstacle struct {
	// Kind and Name identify the object; both are empty if there is no obstacle.
	Kind, Name string
	// Going reports whether the object is being deleted. Finalizers are those of other
	// controllers that keep it.
	Going      bool
	Finalizers string
	// Owner is the controller of an object that is not the cluster's; empty if it has none.
	Owner string
}

// obstructed reports whether a member cannot be started, or not started again. Its pod may be
// running.
func obstructed(m Member) bool { return ours(m) && m.Obstacle.Kind != "" }

func (o Obstacle) reason() string {
	if o.Going {
		return "DeletionStuck"
	}
	return "NameTaken"
}

// fact describes the obstacle, remedy what a person can do about it.
func (o Obstacle) fact() string {
	switch {
	case o.Going && o.Finalizers != "":
		return fmt.Sprintf("the %s %s is being deleted, and the finalizer %s of another controller keeps it", o.Kind, o.Name, o.Finalizers)
	case o.Going:
		return fmt.Sprintf("the %s %s is being deleted and does not disappear", o.Kind, o.Name)
	case o.Owner != "":
		return fmt.Sprintf("the %s %s exists and belongs to %s", o.Kind, o.Name, o.Owner)
	}
	return fmt.Sprintf("the %s %s exists and was not created by Governor", o.Kind, o.Name)
}

func (o Obstacle) remedy() string {
	if o.Going {
		return "Let the owner of the finalizer finish, or remove it with kubectl edit; Governor then creates the object again."
	}
	return "Delete or rename the object."
}

// obstructedMember reports a running member that could not start again. Repairs of other members
// precede it, and changes follow it.
func obstructedMember(seen World) lifecycle.Decision {
	m, ok := seen.find(func(m Member) bool { return obstructed(m) && !KeptVolume(seen, m) })
	if !ok {
		return lifecycle.Decision{}
	}
	return reportObstacle(m)
}

func reportObstacle(m Member) lifecycle.Decision {
	return lifecycle.Block(m.Obstacle.reason(), fmt.Sprintf("%s cannot be started again: %s. %s", m.Name, m.Obstacle.fact(), m.Obstacle.remedy()))
}

// startObstacle is the reason why a member without a vote gets none: it could not start again.
func startObstacle(m Member) string {
	if obstructed(m) && (learner(m) || !m.Joined && !m.Pod.Exists) {
		return m.Obstacle.fact()
	}
	return ""
}

// doom describes why the member's data lasts only as long as its pod.
func doom(m Member) string {
	switch {
	case m.Obstacle.Kind == "StatefulSet":
		return "StatefulSet is being deleted"
	case m.Volume.Unbound && !m.Volume.Terminating:
		return "PersistentVolume no longer exists"
	case m.Volume.Earlier && !m.Volume.Terminating:
		return "PersistentVolumeClaim was deleted under its pod"
	}
	return "PersistentVolumeClaim is being deleted"
}
