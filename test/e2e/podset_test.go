package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/apps/podset/contract"
	"github.com/governor-dev/governor/lifecycle"
)

// TestPodSetContract runs the contract of the simulator's model on real pods.
func TestPodSetContract(t *testing.T) {
	contract.Run(t, func(t *testing.T) contract.System { return newSet(t) })
}

// podSet is a real pod set in its own namespace. It implements contract.System.
type podSet struct{ key client.ObjectKey }

func newSet(t *testing.T) *podSet {
	t.Helper()
	s := &podSet{client.ObjectKey{Namespace: newNamespace(t), Name: contract.Set}}
	eventually(t, "the namespace can have pods", func(ctx context.Context) error {
		return api.Get(ctx, client.ObjectKey{Namespace: s.key.Namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	return s
}

// Apply implements contract.System.
func (s *podSet) Apply(t *testing.T, edit func(*appv1.PodSetSpec)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p := &appv1.PodSet{}
		err := api.Get(t.Context(), s.key, p)
		if apierrors.IsNotFound(err) {
			p.Namespace, p.Name = s.key.Namespace, s.key.Name
			edit(&p.Spec)
			return api.Create(t.Context(), p)
		}
		if err != nil {
			return err
		}
		edit(&p.Spec)
		return api.Update(t.Context(), p)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Tells implements contract.System.
func (s *podSet) Tells(t *testing.T) *appv1.PodSet {
	t.Helper()
	p := &appv1.PodSet{}
	if err := api.Get(t.Context(), s.key, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// Settles implements contract.System.
func (s *podSet) Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *appv1.PodSet {
	t.Helper()
	p := &appv1.PodSet{}
	eventually(t, fmt.Sprintf("%s tells %s %s", s.key, outcome, reason), func(ctx context.Context) error {
		if err := api.Get(ctx, s.key, p); err != nil {
			return err
		}
		return tells(p, outcome, reason)
	})
	return p
}

// Until implements contract.System.
func (s *podSet) Until(t *testing.T, what string, holds func() error) {
	t.Helper()
	eventually(t, what, func(context.Context) error { return holds() })
}

func (s *podSet) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := api.List(t.Context(), &list, client.InNamespace(s.key.Namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// Owners implements contract.System.
func (s *podSet) Owners(t *testing.T) map[string]bool {
	t.Helper()
	owners := map[string]bool{}
	for _, p := range s.pods(t) {
		c := metav1.GetControllerOf(&p)
		if p.DeletionTimestamp == nil {
			owners[p.Name] = c != nil && c.Name == s.key.Name && c.Kind == "PodSet"
		}
	}
	return owners
}

func (s *podSet) pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: name}}
}

// Put implements contract.System.
func (s *podSet) Put(t *testing.T, name string, matching bool) {
	t.Helper()
	p := s.pod(name)
	if matching {
		p.Labels = podset.Selector(s.key.Name)
	}
	p.Spec.Containers = []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}
	if err := api.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func (s *podSet) change(t *testing.T, name, patch string) {
	t.Helper()
	if err := api.Patch(t.Context(), s.pod(name), client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// Hand implements contract.System.
func (s *podSet) Hand(t *testing.T, name string) {
	t.Helper()
	s.change(t, name, `{"metadata":{"labels":{"app.kubernetes.io/instance":"another"}}}`)
}

// Strip implements contract.System.
func (s *podSet) Strip(t *testing.T, name string) {
	t.Helper()
	s.change(t, name, `{"metadata":{"labels":null}}`)
}

// End implements contract.System: the kubelet ends the pod, which then has failed.
func (s *podSet) End(t *testing.T, name string) {
	t.Helper()
	s.change(t, name, `{"spec":{"activeDeadlineSeconds":1}}`)
}

// Lose implements contract.System.
func (s *podSet) Lose(t *testing.T, name string) {
	t.Helper()
	if err := api.Delete(t.Context(), s.pod(name), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

// TestPodSetTour covers a user's first steps: the manifest, kubectl scale and get, a killed pod, deletion.
func TestPodSetTour(t *testing.T) {
	space := newNamespace(t)
	must(t, "-n", space, "apply", "-f", "../../examples/podset.yaml")
	must(t, "-n", space, "wait", "podset/example-podset", "--for=condition=Ready", "--timeout=5m")
	must(t, "-n", space, "scale", "podset/example-podset", "--replicas=5")
	must(t, "-n", space, "wait", "podset/example-podset", "--for=jsonpath={.status.availableReplicas}=5", "--timeout=5m")
	const names = "jsonpath={.status.podNames[*]}"
	if got, want := must(t, "-n", space, "get", "podset", "example-podset", "-o", names),
		"example-podset-0 example-podset-1 example-podset-2 example-podset-3 example-podset-4"; got != want {
		t.Errorf("pods are %s, want %s", got, want)
	}
	uid := func() string { return must(t, "-n", space, "get", "pod", "-o", "jsonpath={.items[*].metadata.uid}") }
	before := uid()
	must(t, "-n", space, "delete", "pod", "example-podset-2", "--wait=false")
	eventually(t, "the killed pod is replaced", func(context.Context) error {
		now := strings.Fields(uid())
		if len(now) != 5 || !slices.ContainsFunc(now, func(u string) bool { return !strings.Contains(before, u) }) {
			return fmt.Errorf("%w: %v", errNotYet, now)
		}
		return nil
	})
	must(t, "-n", space, "wait", "podset/example-podset", "--for=condition=Ready", "--timeout=5m")
	must(t, "-n", space, "scale", "podset/example-podset", "--replicas=0")
	must(t, "-n", space, "wait", "podset/example-podset", "--for=jsonpath={.status.replicas}=0", "--timeout=5m")
	must(t, "-n", space, "scale", "podset/example-podset", "--replicas=2")
	must(t, "-n", space, "wait", "podset/example-podset", "--for=jsonpath={.status.availableReplicas}=2", "--timeout=5m")
	must(t, "-n", space, "delete", "podset", "example-podset")
	eventually(t, "the pods go with their set", func(context.Context) error {
		if left := must(t, "-n", space, "get", "pods", "-o", "name"); left != "" {
			return fmt.Errorf("%w: %s", errNotYet, left)
		}
		return nil
	})
}

// TestPodSetTasks: pods that end by themselves, well or not, are removed and replaced, less and less often.
func TestPodSetTasks(t *testing.T) {
	s := newSet(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) {
		spec.Replicas = 2
		spec.Template.Spec = corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: new(int64(2)),
			Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}},
		}
	})
	s.Settles(t, lifecycle.OutcomeWait, "PodsEndEarly")
	for _, p := range s.pods(t) {
		if p.Annotations[podset.AnnotationAttempt] == "" {
			t.Errorf("pod %s, which replaced one that ended, does not say so", p.Name)
		}
	}
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Template.Spec.ActiveDeadlineSeconds = nil })
	eventually(t, "the mended pods stay", func(context.Context) error {
		return tells(s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable"), lifecycle.OutcomeSettled, "AllAvailable")
	})
}

// TestPodSetGrowsWhileOperatorsFail: operators are killed, one after the other, while a set grows.
func TestPodSetGrowsWhileOperatorsFail(t *testing.T) {
	s := newSet(t)
	const size = 40
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = size })
	most := 0
	for i := range 3 {
		eventually(t, "some pods are made", func(context.Context) error {
			n := len(s.Owners(t))
			if most = max(most, n); n < 1+12*i {
				return fmt.Errorf("%w: %d", errNotYet, n)
			}
			return nil
		})
		must(t, "-n", "governor-system", "delete", "pod", "-l", "app.kubernetes.io/name=governor", "--grace-period=0", "--force")
	}
	eventually(t, "the set is whole", func(context.Context) error {
		n := len(s.Owners(t))
		if most = max(most, n); n != size {
			return fmt.Errorf("%w: %d pods", errNotYet, n)
		}
		return nil
	})
	p := s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	if n := len(s.Owners(t)); most > size || n != size || int(p.Status.AvailableReplicas) != size {
		t.Errorf("%d pods, and once there were %d; the status tells %d available", n, most, p.Status.AvailableReplicas)
	}
}

// TestPodSetRefusesImpossibleTemplate: the preview and the status name the field of a template that no pod can have, and
// all pods stay.
func TestPodSetRefusesImpossibleTemplate(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) {
		spec.Replicas = 3
		spec.Template.Spec.Containers = []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}
	})
	s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	before := s.pods(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Template.Spec.Containers[0].Image = "" })
	p := s.Settles(t, lifecycle.OutcomeBlocked, "TemplateRefused")
	if said := apimeta.FindStatusCondition(p.Status.Conditions, lifecycle.ConditionStalled).Message; !contains(said, "spec.containers[0].image") {
		t.Errorf("the message is %q", said)
	}
	if was, is := podUIDs(before), podUIDs(s.pods(t)); !slices.Equal(was, is) || p.Status.AvailableReplicas != 3 {
		t.Errorf("the pods were %v, and are %v; %d are available", was, is, p.Status.AvailableReplicas)
	}
}

func podUIDs(pods []corev1.Pod) (all []types.UID) {
	for _, p := range pods {
		all = append(all, p.UID)
	}
	slices.Sort(all)
	return all
}
