package rollout_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/rollout"
)

func deployment(generation int64, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
	d := rollout.Deployment("app", "x", 2, corev1.PodSpec{Containers: []corev1.Container{{Image: "i:1"}}})
	d.Generation = generation
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 1, Conditions: conditions}
	return d
}

func named(names ...string) (pods []corev1.Pod) {
	for _, name := range names {
		p := corev1.Pod{}
		p.Name = name
		pods = append(pods, p)
	}
	return pods
}

func TestOf(t *testing.T) {
	stuck := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse}
	cases := map[string]struct {
		reason string
		seen   *appsv1.Deployment
		want   rollout.State
	}{
		"None":    {"there is no Deployment yet", nil, rollout.State{Pods: []string{"a", "b"}}},
		"Current": {"its status is about its spec", deployment(2), rollout.State{Current: true, Image: "i:1", Total: 3, Updated: 2, Available: 1, Pods: []string{"a", "b"}}},
		"Old":     {"its status is about an earlier spec", deployment(3), rollout.State{Image: "i:1", Total: 3, Updated: 2, Available: 1, Pods: []string{"a", "b"}}},
		"Stuck":   {"Kubernetes has given up", deployment(2, stuck), rollout.State{Current: true, Stuck: true, Image: "i:1", Total: 3, Updated: 2, Available: 1, Pods: []string{"a", "b"}}},
		"Retried": {"what was stuck was an earlier spec", deployment(3, stuck), rollout.State{Image: "i:1", Total: 3, Updated: 2, Available: 1, Pods: []string{"a", "b"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, rollout.Of(c.seen, named("b", "a"))); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

// From every small state the wait ends where the rule is silent, and a stuck rollout is reported.
func TestRolling(t *testing.T) {
	for total := range int32(3) {
		for available := range int32(3) {
			s := rollout.State{Current: true, Image: "i", Total: total, Updated: 2, Available: available}
			d := s.Rolling(2, "i")
			if quiet := total == 2 && available == 2; quiet == d.IsSet() {
				t.Errorf("%+v: %s", s, d)
			}
			if after := s.After(d.Step); d.IsSet() && after.Rolling(2, "i").IsSet() {
				t.Errorf("%+v ends as %+v", s, after)
			}
			s.Stuck = true
			if d := s.Rolling(2, "i"); d.IsSet() && d.Reason != "RolloutStuck" {
				t.Errorf("%+v: %s", s, d)
			}
		}
	}
	var none rollout.State
	if after := none.After(none.Rolling(1, "i").Step); after.Image != "i" {
		t.Errorf("there will be servers of the image %q", after.Image)
	}
	s := rollout.State{Total: 1, Image: "i"}
	if diff := cmp.Diff(s, s.After(lifecycle.Step{Name: "Upgrade", Args: map[string]string{"size": "3"}})); diff != "" {
		t.Errorf("a foreign step: %s", diff)
	}
}

func TestRestrictedLeavesWhatIsSaid(t *testing.T) {
	own := &corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)}
	given := corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b", SecurityContext: own}}, AutomountServiceAccountToken: new(true)}
	got := rollout.Restricted(7, given)
	if !*got.SecurityContext.RunAsNonRoot || *got.SecurityContext.RunAsUser != 7 || *got.Containers[0].SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("it is not restricted: %+v", got)
	}
	if !*got.AutomountServiceAccountToken || *got.Containers[1].SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("what was said is lost: %+v", got)
	}
	if given.SecurityContext != nil || given.Containers[0].SecurityContext != nil {
		t.Errorf("the argument was changed: %+v", given)
	}
}
