package dynamic

import (
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/governor-dev/governor/lifecycle"
)

// ChildReady is what [Child.Wait] waits for.
const ChildReady = "ChildReady"

// Steps declares what [Child.Wait] waits for.
func Steps() []lifecycle.StepType { return []lifecycle.StepType{{Name: ChildReady, Wait: true}} }

// Child is what is observed of a custom resource that another one owns. It follows the
// conventions of kstatus. The zero Child is one that does not exist.
type Child struct {
	// Kind and Name of the child.
	Kind, Name string
	// Exists is false for a child that is being deleted, too.
	Exists bool
	// Ready reports that its controller has seen its present spec and is done with it. A kind
	// without conditions is ready as soon as it exists.
	Ready bool
	// Stalled reports that its controller waits for a person.
	Stalled bool
	// Message is what its controller says.
	Message string
}

// ChildOf returns what is observed of the object, which may be of a Go type or unstructured.
func ChildOf(obj lifecycle.Object) Child {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	c := Child{Kind: obj.GetObjectKind().GroupVersionKind().Kind, Name: obj.GetName(), Exists: obj.GetDeletionTimestamp() == nil}
	if err != nil || !c.Exists {
		return c
	}
	status, _ := content[fieldStatus].(map[string]any)
	conditions := decoded(status[fieldConditions])
	observed, says := status[fieldObservedGeneration]
	if says && generation(observed) < obj.GetGeneration() {
		c.Message = "its controller has not seen its present spec"
		return c
	}
	ready := apimeta.FindStatusCondition(conditions, lifecycle.ConditionReady)
	c.Ready = (ready == nil || ready.Status == metav1.ConditionTrue) && !apimeta.IsStatusConditionTrue(conditions, lifecycle.ConditionReconciling)
	if stalled := apimeta.FindStatusCondition(conditions, lifecycle.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
		c.Ready, c.Stalled, c.Message = false, true, stalled.Message
	} else if ready != nil && !c.Ready {
		c.Message = ready.Message
	}
	return c
}

// Wait is a rule: it waits until the child is ready, and blocks while its controller waits for a
// person. It is not set once the child is ready. kind and name are those of a child that does not
// exist yet.
func (c Child) Wait(kind, name string) lifecycle.Decision {
	says := ""
	if c.Message != "" {
		says = ": " + c.Message
	}
	switch {
	case c.Ready:
		return lifecycle.Decision{}
	case c.Stalled:
		return lifecycle.Block("ChildStalled", fmt.Sprintf("The %s %s waits for a person%s", kind, name, says))
	}
	return lifecycle.WaitFor(lifecycle.Step{
		Name: ChildReady, Target: name, Reason: "ChildNotReady", Message: fmt.Sprintf("The %s %s is not ready%s.", kind, name, says),
	}, time.Time{})
}

// After returns the child when the wait of Wait has ended well, and the same child for any other
// step.
func (c Child) After(step lifecycle.Step) Child {
	if step.Name != ChildReady || c.Name != "" && step.Target != c.Name {
		return c
	}
	return Child{Kind: c.Kind, Name: step.Target, Exists: true, Ready: true}
}
