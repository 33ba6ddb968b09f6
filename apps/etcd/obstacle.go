package etcd

import (
	"fmt"

	"github.com/governor-dev/governor/lifecycle"
)

// Obstacle is an object without which a member cannot be started, and which cannot be as
// declared: it is being deleted and does not go, or its name is taken.
type Obstacle struct {
	// Kind and Name are those of the object; both are empty if nothing is in the way.
	Kind, Name string
	// Going says that the object is being deleted. Finalizers are those of other controllers
	// that keep it.
	Going      bool
	Finalizers string
	// Owner controls an object that is not the cluster's; empty if none does.
	Owner string
}

// obstructed members cannot be started, or started again. The pod of such a member may run.
func obstructed(m Member) bool { return ours(m) && m.Obstacle.Kind != "" }

func (o Obstacle) reason() string {
	if o.Going {
		return "DeletionStuck"
	}
	return "NameTaken"
}

// fact says what is in the way, remedy what a person can do about it.
func (o Obstacle) fact() string {
	switch {
	case o.Going && o.Finalizers != "":
		return fmt.Sprintf("the %s %s is being deleted, and the finalizer %s of another controller keeps it", o.Kind, o.Name, o.Finalizers)
	case o.Going:
		return fmt.Sprintf("the %s %s is being deleted and does not go", o.Kind, o.Name)
	case o.Owner != "":
		return fmt.Sprintf("the %s %s exists and belongs to %s", o.Kind, o.Name, o.Owner)
	}
	return fmt.Sprintf("the %s %s exists and was not made by Governor", o.Kind, o.Name)
}

func (o Obstacle) remedy() string {
	if o.Going {
		return "Let the owner of the finalizer finish, or remove it with kubectl edit; Governor makes the object again."
	}
	return "Remove or rename the object."
}

// obstructedMember reports a member whose pod runs and could not be started again. Repairs
// of other members come before it, wishes after it.
func obstructedMember(seen World) lifecycle.Decision {
	m, ok := seen.find(obstructed)
	if !ok {
		return lifecycle.Decision{}
	}
	return hamper(m)
}

func hamper(m Member) lifecycle.Decision {
	return lifecycle.Block(m.Obstacle.reason(), fmt.Sprintf("%s cannot be started again: %s. %s", m.Name, m.Obstacle.fact(), m.Obstacle.remedy()))
}

// nevermore is why a member without a vote gets none: it could not be started again.
func nevermore(m Member) string {
	if obstructed(m) && (learner(m) || !m.Joined && !m.Pod.Exists) {
		return m.Obstacle.fact()
	}
	return ""
}

// going is what is being deleted of a doomed member.
func going(m Member) string {
	if m.Obstacle.Kind == "StatefulSet" {
		return "StatefulSet"
	}
	return "PersistentVolumeClaim"
}
