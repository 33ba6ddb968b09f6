package driver

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func set() *appv1.PodSet {
	p := &appv1.PodSet{}
	p.Name, p.Namespace, p.UID, p.Spec.Replicas = "web", "ns", "set", 3
	return p
}

// podOf returns a pod of the set, as the API server returns it.
func podOf(uid types.UID, edit func(*corev1.Pod)) *corev1.Pod {
	p := podset.PodFor(set(), podset.Fingerprint(set()), "web-"+string(uid), 0)
	p.UID, p.CreationTimestamp = uid, metav1.NewTime(noon)
	if edit != nil {
		edit(p)
	}
	return p
}

func TestRead(t *testing.T) {
	at := func(s int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(s) * time.Second)) }
	base := podset.Pod{
		Name: "web-a", UID: "a", Owned: true, Matches: true, Created: noon, Template: podset.Fingerprint(set()),
	}
	with := func(edit func(*podset.Pod)) podset.Pod { p := base; edit(&p); return p }
	cases := map[string]struct {
		edit func(*corev1.Pod)
		want podset.Pod
	}{
		"New": {nil, base},
		"Ready": {func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning
			p.Annotations = map[string]string{corev1.PodDeletionCost: "-7"}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(3)}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{RestartCount: 4}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2}}
		}, with(func(p *podset.Pod) {
			p.Node, p.Phase, p.Ready, p.ReadySince, p.Cost, p.Restarts = "n", podset.PhaseRunning, true, at(3).Time, -7, 4
		})},
		"CostNonsense":  {func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "dear"} }, base},
		"Leaving":       {func(p *corev1.Pod) { p.DeletionTimestamp = new(at(1)) }, with(func(p *podset.Pod) { p.Terminating = true })},
		"Stray":         {func(p *corev1.Pod) { p.Labels[lifecycle.LabelInstance] = "other" }, with(func(p *podset.Pod) { p.Matches = false })},
		"Orphan":        {func(p *corev1.Pod) { p.OwnerReferences = nil }, with(func(p *podset.Pod) { p.Owned = false })},
		"SetOfThatName": {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "earlier" }, with(func(p *podset.Pod) { p.Owned = false })},
		"Failed": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.StartTime = corev1.PodFailed, new(at(1))
			p.Annotations = map[string]string{podset.AnnotationAttempt: "2"}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(9)}}}}
		}, with(func(p *podset.Pod) {
			p.Phase, p.Attempt, p.StartedAt, p.FinishedAt = podset.PhaseFinished, 2, at(1).Time, at(9).Time
		})},
		"Evicted": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, LastTransitionTime: at(5)}}
		}, with(func(p *podset.Pod) { p.Phase, p.StartedAt, p.FinishedAt = podset.PhaseFinished, noon, at(5).Time })},
		"Second": {func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "one"}, {Name: "two"}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "one"}, {
				Name: "two", Image: "x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
			}}
		}, with(func(p *podset.Pod) {
			p.Problem, p.Detail, p.Since = lifecycle.PodProblemImagePullBackOff, `image "x" cannot be pulled`, noon
		})},
		"SecondCrashes": {func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "one"}, {Name: "two"}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "one"}, {
				Name: "two", RestartCount: 3, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}},
			}}
		}, with(func(p *podset.Pod) {
			p.Problem, p.Detail, p.Since = lifecycle.PodProblemCrashLoopBackOff, "two exits repeatedly (Error, exit code 1)", noon
			p.Restarts = 3
		})},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, read(set(), podOf("a", c.edit))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckPodsUnchanged(t *testing.T) {
	seen := podset.World{Pods: []podset.Pod{read(set(), podOf("a", nil)), read(set(), podOf("b", nil))}}
	leaves := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(noon)) }
	another := func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }
	cases := map[string]struct {
		reason string
		pods   []*corev1.Pod
		want   string
	}{
		"Same":     {"the pods are the observed ones", []*corev1.Pod{podOf("a", nil), podOf("b", nil)}, ""},
		"Unseen":   {"another operator created a pod", []*corev1.Pod{podOf("a", nil), podOf("b", nil), podOf("c", nil)}, `pod "web-c" is not in the cache yet`},
		"Orphan":   {"the set would adopt an orphan", []*corev1.Pod{podOf("a", nil), podOf("b", nil), podOf("c", func(p *corev1.Pod) { p.OwnerReferences = nil })}, `pod "web-c" is not in the cache yet`},
		"Foreign":  {"a pod of another controller does not count", []*corev1.Pod{podOf("a", nil), podOf("b", nil), podOf("c", another)}, ""},
		"Leaves":   {"a pod that is being deleted does not count", []*corev1.Pod{podOf("a", nil), podOf("b", nil), podOf("c", leaves)}, ""},
		"Gone":     {"a pod is gone, so no other pod may be deleted", []*corev1.Pod{podOf("a", nil)}, `pod "web-b" is gone`},
		"Going":    {"a terminating pod counts as gone", []*corev1.Pod{podOf("a", nil), podOf("b", leaves)}, `pod "web-b" is gone`},
		"Replaced": {"a new pod of the same name is not the observed one", []*corev1.Pod{podOf("a", nil), podOf("b", func(p *corev1.Pod) { p.UID = "b2" })}, `pod "web-b" is not in the cache yet`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []metav1.PartialObjectMetadata
			for _, p := range c.pods {
				pods = append(pods, metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta})
			}
			err := checkPodsUnchanged(set(), seen, pods)
			var postponed *lifecycle.Deferred
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s: %v", c.reason, err)
			case c.want != "" && (!errors.As(err, &postponed) || err.Error() != c.want):
				t.Errorf("%s: got %v, want %s", c.reason, err, c.want)
			}
		})
	}
}

func TestInParallel(t *testing.T) {
	h := make(requestLimit, 3)
	done := make([]bool, 100)
	err := h.inParallel(len(done), func(i int) error {
		done[i] = true
		if len(h) > 3 {
			t.Errorf("%d requests at a time", len(h))
		}
		if i == 40 || i == 70 {
			return errors.New("refused: " + string(rune('0'+i/10)))
		}
		return nil
	})
	if err == nil || err.Error() != "refused: 4" {
		t.Errorf("got %v, want the first error", err)
	}
	for i, is := range done {
		if !is {
			t.Errorf("%d was not done", i)
		}
	}
}
