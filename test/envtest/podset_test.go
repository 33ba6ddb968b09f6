package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/apps/podset/contract"
	"github.com/governor-dev/governor/lifecycle"
)

// kubelets plays the scheduler and the kubelets of a namespace until the test ends: pods
// run and become ready as soon as they are seen.
func kubelets(t *testing.T, namespace string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		look := time.NewTicker(30 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				startPods(ctx, namespace)
			}
		}
	}()
}

func startPods(ctx context.Context, namespace string) {
	list := &corev1.PodList{}
	if api.List(ctx, list, client.InNamespace(namespace)) != nil {
		return
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase != corev1.PodPending || p.DeletionTimestamp != nil {
			continue
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		_ = api.Status().Update(ctx, p) // a conflict is retried with the next event
	}
}

// sets is a namespace with a PodSet on a real API server. It implements contract.System.
type sets struct {
	namespace string
	op        *operator
}

func newSets(t *testing.T) *sets {
	t.Helper()
	s := &sets{namespace: newNamespace(t)}
	kubelets(t, s.namespace)
	s.op = startOperator(t, s.namespace)
	return s
}

// The real driver on a real API server behaves like the model of the simulator.
func TestPodSetContract(t *testing.T) {
	contract.Run(t, func(t *testing.T) contract.System { return newSets(t) })
}

// Apply implements contract.System.
func (s *sets) Apply(t *testing.T, edit func(*appv1.PodSetSpec)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p, err := get(t, &appv1.PodSet{}, s.namespace, contract.Set)
		if apierrors.IsNotFound(err) {
			p.Namespace, p.Name = s.namespace, contract.Set
			edit(&p.Spec)
			return strict().Create(t.Context(), p)
		}
		must(t, err)
		edit(&p.Spec)
		return strict().Update(t.Context(), p)
	})
	must(t, err)
}

// Settles implements contract.System.
func (s *sets) Settles(t *testing.T, outcome lifecycle.Outcome, reason string) (p *appv1.PodSet) {
	t.Helper()
	eventually(t, fmt.Sprintf("the set reports %s %s", outcome, reason), func() (err error) {
		if p, err = get(t, &appv1.PodSet{}, s.namespace, contract.Set); err != nil {
			return err
		}
		if p.Status.ObservedGeneration != p.Generation {
			return errors.New("the status is about an older generation")
		}
		for _, want := range lifecycle.StandardConditions(lifecycle.Decision{Outcome: outcome}, nil) {
			got := apimeta.FindStatusCondition(p.Status.Conditions, want.Type)
			if got == nil || got.Status != want.Status || got.Reason != reason {
				return fmt.Errorf("%s is %+v", want.Type, got)
			}
		}
		return nil
	})
	return p
}

// Tells implements contract.System.
func (s *sets) Tells(t *testing.T) *appv1.PodSet {
	t.Helper()
	p, err := get(t, &appv1.PodSet{}, s.namespace, contract.Set)
	must(t, err)
	return p
}

// Until implements contract.System.
func (s *sets) Until(t *testing.T, what string, holds func() error) {
	t.Helper()
	eventually(t, what, holds)
}

func (s *sets) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	must(t, api.List(t.Context(), list, client.InNamespace(s.namespace)))
	return list.Items
}

// Owners implements contract.System.
func (s *sets) Owners(t *testing.T) map[string]bool {
	t.Helper()
	owners := map[string]bool{}
	for _, p := range s.pods(t) {
		c := metav1.GetControllerOf(&p)
		if p.DeletionTimestamp == nil {
			owners[p.Name] = c != nil && c.Name == contract.Set && c.Kind == "PodSet"
		}
	}
	return owners
}

func barePod(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}},
	}
}

// Put implements contract.System.
func (s *sets) Put(t *testing.T, name string, matching bool) {
	t.Helper()
	var labels map[string]string
	if matching {
		labels = podset.Selector(contract.Set)
	}
	must(t, api.Create(t.Context(), barePod(s.namespace, name, labels)))
}

func (s *sets) label(t *testing.T, name, labels string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":`+labels+`}}`))
	must(t, api.Patch(t.Context(), barePod(s.namespace, name, nil), patch))
}

// Hand implements contract.System.
func (s *sets) Hand(t *testing.T, name string) {
	t.Helper()
	s.label(t, name, `{"app.kubernetes.io/instance":"another"}`)
}

// Strip implements contract.System.
func (s *sets) Strip(t *testing.T, name string) {
	t.Helper()
	s.label(t, name, `null`)
}

// End implements contract.System.
func (s *sets) End(t *testing.T, name string) {
	t.Helper()
	must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p, err := get(t, &corev1.Pod{}, s.namespace, name)
		must(t, err)
		p.Status.Phase = corev1.PodFailed
		return api.Status().Update(t.Context(), p)
	}))
}

// Lose implements contract.System.
func (s *sets) Lose(t *testing.T, name string) {
	t.Helper()
	must(t, api.Delete(t.Context(), barePod(s.namespace, name, nil), client.GracePeriodSeconds(0)))
}

func TestPodSetManifestWorks(t *testing.T) {
	s := newSets(t)
	raw, err := os.ReadFile("../../examples/podset.yaml")
	must(t, err)
	p := &appv1.PodSet{}
	must(t, yaml.UnmarshalStrict(raw, p))
	p.Namespace = s.namespace
	must(t, strict().Create(t.Context(), p))
	if c := p.Spec.Template.Spec.Containers; len(c) != 1 || c[0].Image != "registry.k8s.io/pause:3.10" {
		t.Errorf("the default template is not visible: %+v", c)
	}
	eventually(t, "three pods are available", func() error {
		p, err := get(t, &appv1.PodSet{}, s.namespace, "example-podset")
		if err == nil && p.Status.AvailableReplicas != 3 {
			err = fmt.Errorf("the status is %+v", p.Status)
		}
		if want := []string{"example-podset-0", "example-podset-1", "example-podset-2"}; err == nil && !slices.Equal(p.Status.PodNames, want) {
			err = fmt.Errorf("pods are %v", p.Status.PodNames)
		}
		return err
	})
}

// An autoscaler reads and writes the scale, and finds the pods by its selector.
func TestPodSetScale(t *testing.T) {
	s := newSets(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 2 })
	p := s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	scale := &autoscalingv1.Scale{}
	must(t, api.SubResource("scale").Get(t.Context(), p, scale))
	selector, err := metav1.ParseToLabelSelector(scale.Status.Selector)
	must(t, err)
	by, err := metav1.LabelSelectorAsSelector(selector)
	must(t, err)
	list := &corev1.PodList{}
	must(t, api.List(t.Context(), list, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: by}))
	if scale.Spec.Replicas != 2 || scale.Status.Replicas != 2 || len(list.Items) != 2 {
		t.Errorf("the scale is %+v, its selector finds %d pods", scale, len(list.Items))
	}
	scale.Spec.Replicas = 4
	must(t, api.SubResource("scale").Update(t.Context(), p, client.WithSubResourceBody(scale)))
	eventually(t, "the status shows four pods", func() error {
		if st := s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable").Status; st.Replicas != 4 {
			return fmt.Errorf("%d pods", st.Replicas)
		}
		return nil
	})
}

func TestSettledPodSetCausesNoWrites(t *testing.T) {
	s := newSets(t)
	s.Put(t, "found", true)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 20 })
	s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	quiet(t, s.namespace, s.op)
	written := s.op.writes.Load()
	s.label(t, contract.Set+"-3", `{"example.com/mine":"yes"}`) // triggers a reconcile
	quiet(t, s.namespace, s.op)
	if more := s.op.since(written); len(more) > 0 {
		t.Errorf("at rest it writes %q", more)
	}
}

// Pods outlive a set that is deleted with orphaning, and the next set of that name adopts
// them.
func TestNextSetAdoptsOrphanedPods(t *testing.T) {
	s := newSets(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 2 })
	old := s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	must(t, api.Delete(t.Context(), old, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	for i := range 2 { // envtest has no garbage collector
		name := fmt.Sprintf("%s-%d", contract.Set, i)
		must(t, api.Patch(t.Context(), barePod(s.namespace, name, nil),
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"ownerReferences":null}}`))))
	}
	must(t, api.Patch(t.Context(), old, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	eventually(t, "the old set is gone", func() error {
		if _, err := get(t, &appv1.PodSet{}, s.namespace, contract.Set); !apierrors.IsNotFound(err) {
			return errors.New("it still exists")
		}
		return nil
	})
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 2 })
	p := s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	for _, pod := range s.pods(t) {
		if !metav1.IsControlledBy(&pod, p) {
			t.Errorf("pod %s is not adopted", pod.Name)
		}
	}
}

// A pod of another controller is left alone, whatever its labels are.
func TestPodSetIgnoresPodsOfOtherControllers(t *testing.T) {
	s := newSets(t)
	taken := barePod(s.namespace, contract.Set+"-0", podset.Selector(contract.Set))
	taken.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "other", Controller: new(true),
	}}
	must(t, api.Create(t.Context(), taken))
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 2 })
	if p := s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable"); !slices.Equal(p.Status.PodNames, []string{"web-1", "web-2"}) {
		t.Errorf("pods are %v", p.Status.PodNames)
	}
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 0 })
	s.Settles(t, lifecycle.OutcomeSettled, "ScaledToZero")
	if pod, err := get(t, &corev1.Pod{}, s.namespace, taken.Name); err != nil || metav1.GetControllerOf(pod).Name != "other" {
		t.Errorf("the other's pod: %v", err)
	}
}

// A set that is being deleted adopts no pod that is to outlive it, and creates none.
func TestDeletedPodSetAdoptsNothing(t *testing.T) {
	s := newSets(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = 2 })
	p := s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	finalizers := func(list string) {
		must(t, api.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+list+`}}`))))
	}
	finalizers(`["example.com/slow"]`)
	t.Cleanup(func() {
		p.ResourceVersion = ""
		_ = api.Patch(context.Background(), p, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	must(t, api.Delete(t.Context(), p))
	quiet(t, s.namespace, s.op)
	written := s.op.writes.Load()
	s.Put(t, "orphan", true)
	s.Lose(t, contract.Set+"-0")
	s.Hand(t, contract.Set+"-1")
	quiet(t, s.namespace, s.op)
	if more := s.op.since(written); len(more) > 0 || s.Owners(t)["orphan"] {
		t.Errorf("it still does %q", more)
	}
}

// A rejection by the API server is reported in its own words, and causes few requests.
func TestPodSetRefusalIsReported(t *testing.T) {
	s := newSets(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) {
		spec.Replicas = 100
		spec.Template.Spec.Containers = []corev1.Container{{Name: "Not A Name", Image: "x"}}
	})
	p := s.Settles(t, lifecycle.OutcomeBlocked, "Refused")
	if ready := apimeta.FindStatusCondition(p.Status.Conditions, lifecycle.ConditionReady); !strings.Contains(ready.Message, "spec.containers[0].name") {
		t.Errorf("the message names no field: %s", ready.Message)
	}
	tries := 0
	for _, line := range s.op.since(0) {
		if strings.HasPrefix(line, "POST") && strings.HasSuffix(line, "/pods") {
			tries++
		}
	}
	if tries > 20 {
		t.Errorf("%d pods were tried of what is refused to all", tries)
	}
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas, spec.Template.Spec.Containers[0].Name = 2, "pause" })
	s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
}

// No healthy pod is deleted for a template of which the API server rejects pods, and the
// status says what is wrong with it.
func TestPodSetKeepsItsPodsWhenTheTemplateIsRefused(t *testing.T) {
	s := newSets(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) {
		spec.Replicas, spec.Template.Spec = 3, barePod(s.namespace, "x", nil).Spec
	})
	s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
	before := s.pods(t)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Template.Spec.Containers[0].Image = "" })
	p := s.Settles(t, lifecycle.OutcomeBlocked, "TemplateRefused")
	ready := apimeta.FindStatusCondition(p.Status.Conditions, "Ready")
	if !strings.Contains(ready.Message, "spec.containers[0].image") || p.Status.AvailableReplicas != 3 {
		t.Errorf("%d are available: %s", p.Status.AvailableReplicas, ready.Message)
	}
	for i, now := range s.pods(t) {
		if now.UID != before[i].UID || now.DeletionTimestamp != nil {
			t.Errorf("the pod %s has gone for a template that no pod can have", before[i].Name)
		}
	}
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Template.Spec.Containers[0].Image = "registry.k8s.io/pause:3.9" })
	s.Settles(t, lifecycle.OutcomeSettled, "AllAvailable")
}
