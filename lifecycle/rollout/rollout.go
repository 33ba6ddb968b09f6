// Package rollout is what a Planner has to know of a Deployment that rolls by itself: what is seen of it, the rule that
// waits for it, how that wait ends, and the Deployment itself. It is pure; package observe reads one from a cluster.
package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// RolledOut is what Rolling waits for.
const RolledOut = "RolledOut"

// rolledOutArgs are the arguments of RolledOut.
type rolledOutArgs struct {
	Size  int32  `json:"size"`
	Image string `json:"image"`
}

// Steps declares what Rolling waits for.
func Steps() []lifecycle.StepType {
	return []lifecycle.StepType{{Name: RolledOut, Wait: true, Args: rolledOutArgs{}}}
}

// State is what is seen of a Deployment and its pods. The zero State is that of one that does not exist.
type State struct {
	// Current says that the rest is about the Deployment's present spec.
	Current bool
	// Stuck says that Kubernetes has given up waiting for the rollout.
	Stuck bool
	// Image is what the first container of a pod is to run; empty if there is no Deployment.
	Image string
	// Total is how many pods there are, Updated those of the present template, Available those that answer.
	Total, Updated, Available int32
	// Pods are their names, sorted.
	Pods []string
}

// Of returns the state of the Deployment, nil if there is none, and its pods.
func Of(d *appsv1.Deployment, pods []corev1.Pod) State {
	var s State
	for _, p := range pods {
		s.Pods = append(s.Pods, p.Name)
	}
	slices.Sort(s.Pods)
	if d == nil {
		return s
	}
	s.Current = d.Status.ObservedGeneration >= d.Generation
	s.Total, s.Updated, s.Available = d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas
	s.Stuck = s.Current && slices.ContainsFunc(d.Status.Conditions, gaveUp)
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		s.Image = containers[0].Image
	}
	return s
}

func gaveUp(c appsv1.DeploymentCondition) bool {
	return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
}

// Rolling is a rule: it waits until so many pods answer, all of the present template, and is silent when they do. It
// blocks when Kubernetes has given up. The image is what the pods of a Deployment that does not exist yet will run.
func (s State) Rolling(size int32, image string) lifecycle.Decision {
	if s.Current && s.Available == size && s.Updated == size && s.Total == size {
		return lifecycle.Decision{}
	}
	said := fmt.Sprintf("%d of %d pods answer", s.Available, size)
	if s.Stuck {
		return lifecycle.Block("RolloutStuck", said+", and no progress is made. See what hinders the others (kubectl describe pods), or change the spec.")
	}
	wait := lifecycle.Step{Name: RolledOut, Reason: "RollingOut", Message: said + "."}
	return lifecycle.WaitFor(wait.WithArgs(rolledOutArgs{size, cmp.Or(s.Image, image)}), time.Time{})
}

// After returns the state when the wait of Rolling has ended well, and the same state for any other step. The names of
// new pods cannot be predicted.
func (s State) After(step lifecycle.Step) State {
	args, err := lifecycle.ArgsOf[rolledOutArgs](step)
	if step.Name != RolledOut || err != nil {
		return s
	}
	n := args.Size
	return State{Current: true, Image: args.Image, Total: n, Updated: n, Available: n, Pods: s.Pods}
}
