package etcd

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// Trial is a pod that tries the next template before a serving member restarts for it: it pulls the
// image, and etcd parses its flags, prints its version and exits. It has no data, and no Service
// selects it. The zero Trial means that there is none.
type Trial struct {
	// Possible reports whether Governor can try a template. It is false in a world without nodes.
	Possible bool
	// Template is what the pod tries, see [TemplateOf]; empty if there is no pod.
	Template string
	// Passed reports that etcd printed its version.
	Passed bool
	// Problem and Detail are why the template cannot run.
	Problem lifecycle.PodProblem
	Detail  string
	// Unscheduled is the scheduler's reason why no node takes the pod; empty if one did. The scheduler chooses only if
	// the member's present node does not match, and among nodes that can use its volume: the pod needs less than the
	// member, which would find no node either.
	Unscheduled string
	// Movable reports that the scheduler took no node, and that the member's node matches now.
	Movable bool
	// Unknown is why the pod cannot tell; empty if it can.
	Unknown string
	// Since is when the pod got a node, otherwise when it was created.
	Since time.Time
}

// TrialTime limits a trial. Without a result by then, the first member finds out.
const TrialTime = 2 * time.Minute

// AnnotationTemplate is the template that a trial pod tries.
const AnnotationTemplate = "etcd.database.coreos.com/template"

// AnnotationTried is the member for which a trial pod tries its template.
const AnnotationTried = "etcd.database.coreos.com/tried-for"

// TrialName is the name of the cluster's trial pod.
func TrialName(want *etcdv1.EtcdCluster) string { return want.Name + "-trial" }

// untriedTemplate tries a changed spec before the first serving member restarts with it. A member
// without a volume is replaced by one that serves first, which needs no trial.
func untriedTemplate(want desired, seen World, m Member, s lifecycle.Step, now time.Time) lifecycle.Decision {
	t := seen.Trial
	if !t.Possible || Volatile(want.EtcdCluster) || !seen.serving(m) || want.difference(m) == authoritiesChanged || !changedSpec(want, seen, s) {
		return lifecycle.Decision{}
	}
	switch {
	case t.Template != TemplateOf(s):
		try := s
		try.Name, try.Class = StartTrial, lifecycle.ClassDisruptive // policies hold it with the change
		try.Message = fmt.Sprintf("A trial pod pulls the image and checks the flags of etcd %s, before %s restarts.", s.Args[ArgVersion], m.Name)
		return lifecycle.Proceed(try)
	case t.Problem != lifecycle.PodProblemNone:
		return lifecycle.Fail(trialReason(t), fmt.Sprintf("The changed spec cannot run: %s. No serving member restarts for it. "+
			"Correct spec.version, spec.repository, spec.image or spec.pod.", t.Detail))
	case t.Unscheduled != "" && t.late(now):
		return unscheduledTrial(want, m, t, now)
	case t.Passed, t.without(now) != "":
		return lifecycle.Decision{}
	}
	wait := s
	wait.Name, wait.Class = TrialPassed, lifecycle.ClassRoutine
	wait.Message = fmt.Sprintf("A trial pod pulls the image and checks the flags of etcd %s; %s restarts when it has passed, or after %s.", s.Args[ArgVersion], m.Name, TrialTime)
	d := lifecycle.WaitFor(wait, t.Since)
	if t.Since.IsZero() {
		return d
	}
	return d.Until(t.Since.Add(TrialTime))
}

// unscheduledTrial holds the change. It has failed after replaceAfter, because new nodes take time.
func unscheduledTrial(want desired, m Member, t Trial, now time.Time) lifecycle.Decision {
	says := lifecycle.Block
	if !now.Before(t.Since.Add(want.replaceAfter())) {
		says = lifecycle.Fail
	}
	return says(string(lifecycle.PodProblemUnschedulable), fmt.Sprintf("With the changed spec, no node takes the pod of %s: %s. "+
		"No serving member restarts for it. Correct spec.pod, or add nodes that can use its volume.", m.Name, t.Unscheduled))
}

// late reports that the trial has had its time.
func (t Trial) late(now time.Time) bool {
	return !t.Since.IsZero() && !now.Before(t.Since.Add(TrialTime))
}

// without is why a member restarts without the result of the trial; empty if it waits for it.
func (t Trial) without(now time.Time) string {
	switch {
	case t.Passed || t.Problem != lifecycle.PodProblemNone || t.Unscheduled != "":
		return ""
	case t.Unknown != "":
		return t.Unknown
	case t.late(now):
		return fmt.Sprintf("it has no result after %s", TrialTime)
	}
	return ""
}

// withoutTrial adds to the step that its template was not tried.
func withoutTrial(seen World, s lifecycle.Step, now time.Time) lifecycle.Step {
	if why := seen.Trial.without(now); why != "" && seen.Trial.Template == TemplateOf(s) {
		s.Message += " A trial pod could not try its image and flags before: " + why + "."
	}
	return s
}

// trialReason is the reason that the first member would report.
func trialReason(t Trial) string {
	if t.Problem == lifecycle.PodProblemCrashLoopBackOff {
		return "ChangeFailed"
	}
	return string(t.Problem)
}

// trialOver deletes the trial pod of a template that a member has, or that is no longer wanted.
func trialOver(want desired, seen World) lifecycle.Decision {
	trial := Member{Name: TrialName(want.EtcdCluster)}
	switch {
	case seen.Trial.Template == "":
		return lifecycle.Decision{}
	case seen.Trial.Movable:
		return lifecycle.Proceed(step(DeleteTrial, trial, "NodeMatches", "The member's node matches the changed spec now; Governor creates the trial pod %s there.", trial.Name))
	}
	if m, ok := followerFirst(seen, want.isOutdated); ok {
		s := restart(want, m, want.after(m), "", "")
		if seen.Trial.Template == TemplateOf(s) && changedSpec(want, seen, s) {
			return lifecycle.Decision{}
		}
	}
	return lifecycle.Proceed(step(DeleteTrial, trial, "TrialOver", "The trial pod %s is no longer needed.", trial.Name))
}

// withTrial returns the world after a step or a wait about the trial pod.
func withTrial(seen World, s lifecycle.Step) World {
	switch s.Name {
	case StartTrial:
		seen.Trial = Trial{Possible: true, Template: TemplateOf(s)}
	case TrialPassed:
		seen.Trial.Passed = true
	case DeleteTrial:
		seen.Trial = Trial{Possible: true}
	}
	return seen
}

// TrialPod renders the trial pod of the step. The caller sets namespace and owner, and chooses the
// node. The pod lacks the labels by which Services and disruption budgets select members, also those
// of the user.
func TrialPod(want *etcdv1.EtcdCluster, seen World, s lifecycle.Step) (*corev1.Pod, error) {
	set, err := StatefulSet(want, seen, s)
	if err != nil {
		return nil, err
	}
	from := set.Spec.Template.Spec
	etcd := from.Containers[0]
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        TrialName(want),
			Labels:      map[string]string{lifecycle.LabelApp: Name, lifecycle.LabelInstance: want.Name, lifecycle.LabelName: "etcd-trial"},
			Annotations: merged(want.Spec.Pod.Annotations, map[string]string{AnnotationTemplate: TemplateOf(s), AnnotationTried: s.Target}),
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: etcd.Name, Image: etcd.Image, Command: etcd.Command, Args: append(etcd.Args, "--version"), Env: etcd.Env,
				Resources: trialResources(), SecurityContext: etcd.SecurityContext, TerminationMessagePolicy: etcd.TerminationMessagePolicy,
			}},
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(1)),
			SecurityContext: from.SecurityContext, Tolerations: from.Tolerations, NodeSelector: from.NodeSelector, Affinity: nodeAffinity(from),
			ServiceAccountName: from.ServiceAccountName, ImagePullSecrets: from.ImagePullSecrets, PriorityClassName: from.PriorityClassName,
		},
	}, nil
}

func nodeAffinity(from corev1.PodSpec) *corev1.Affinity {
	if from.Affinity == nil || from.Affinity.NodeAffinity == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: from.Affinity.NodeAffinity}
}

// trialResources are little, and set, because a quota may demand limits.
func trialResources() corev1.ResourceRequirements {
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	most := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return corev1.ResourceRequirements{Requests: little, Limits: most}
}
