package subject

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

// Look implements experiment.Instance.
func (s *Subject) Look(ctx context.Context) (experiment.State, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.Kind)
	err := s.Client.Get(ctx, s.Key, object)
	if apierrors.IsNotFound(err) || err == nil && object.GetUID() != s.uid {
		return experiment.State{OptedIn: true, Deleting: true}, nil
	}
	if err != nil {
		return experiment.State{}, err
	}
	state := stateOf(object)
	for _, look := range []func(context.Context, *unstructured.Unstructured, *experiment.State) error{s.namespace, s.policies, s.pods, s.budgets} {
		if err := look(ctx, object, &state); err != nil {
			return experiment.State{}, err
		}
	}
	return state, nil
}

// stateOf is what the object itself tells.
func stateOf(o *unstructured.Unstructured) experiment.State {
	var status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	}
	raw, _, _ := unstructured.NestedMap(o.Object, "status") // without one nothing is Ready
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &status)
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	state := experiment.State{
		Deleting: o.GetDeletionTimestamp() != nil,
		Paused: paused || o.GetAnnotations()[lifecycle.AnnotationPaused] == "true" ||
			apimeta.IsStatusConditionTrue(status.Conditions, lifecycle.ConditionPaused),
		Changing: status.ObservedGeneration != o.GetGeneration() || apimeta.IsStatusConditionTrue(status.Conditions, lifecycle.ConditionReconciling),
		Reason:   "NotSeen", Kept: membersOf(o),
	}
	if c := apimeta.FindStatusCondition(status.Conditions, lifecycle.ConditionReady); c != nil {
		state.Ready, state.Reason, state.Message = c.Status == metav1.ConditionTrue, c.Reason, c.Message
	}
	return state
}

// membersOf are the IDs of the members that the status names, if the kind has such a status.
func membersOf(o *unstructured.Unstructured) map[string]string {
	known := map[string]string{}
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "members")
	for _, one := range all {
		m, _ := one.(map[string]any)
		name, _ := m["name"].(string)
		if id, _ := m["id"].(string); name != "" && id != "" {
			known["member "+name] = id
		}
	}
	return known
}

func (s *Subject) namespace(ctx context.Context, _ *unstructured.Unstructured, state *experiment.State) error {
	ns := &corev1.Namespace{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: s.Key.Namespace}, ns); err != nil {
		return fmt.Errorf("whether the namespace permits experiments cannot be seen: %w", err)
	}
	state.OptedIn = ns.Labels[experiment.OptInLabel] == experiment.OptInValue
	return nil
}

func (s *Subject) pods(ctx context.Context, _ *unstructured.Unstructured, state *experiment.State) error {
	list := &corev1.PodList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.Key.Namespace), s.labels()); err != nil {
		return err
	}
	kept, err := s.claims(ctx, state)
	if err != nil {
		return err
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed && s.mine(p) {
			state.Pods = append(state.Pods, experiment.Pod{Name: p.Name, UID: string(p.UID), Ready: ready(p), Volatile: volatile(p, kept)})
		}
	}
	return nil
}

// claims are the claims of the namespace that outlive their pods: a claim that is being
// deleted goes with its pod. Those of the instance are among what must survive.
func (s *Subject) claims(ctx context.Context, state *experiment.State) (map[string]bool, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.Key.Namespace)); err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for i := range list.Items {
		c := &list.Items[i]
		if kept[c.Name] = c.DeletionTimestamp == nil; kept[c.Name] && c.Labels[lifecycle.LabelInstance] == s.Key.Name {
			state.Kept["PersistentVolumeClaim "+c.Name] = string(c.UID)
		}
	}
	return kept, nil
}

// ready reports whether the pod serves and will go on to.
func ready(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// volatile reports whether data may go with the pod: one of its claims does not outlive it,
// or it has none. The pods of a Deployment keep no data of their own: Kubernetes replaces
// them at any time.
func volatile(p *corev1.Pod, kept map[string]bool) bool {
	claimed := false
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if claimed = true; !kept[v.PersistentVolumeClaim.ClaimName] {
			return true
		}
	}
	c := metav1.GetControllerOf(p)
	return !claimed && (c == nil || c.Kind != "ReplicaSet")
}

func (s *Subject) budgets(ctx context.Context, _ *unstructured.Unstructured, state *experiment.State) error {
	list := &policyv1.PodDisruptionBudgetList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.Key.Namespace), s.labels()); err != nil {
		return err
	}
	for i := range list.Items {
		if b := &list.Items[i]; s.mine(b) {
			state.Budget, state.MinReady = true, max(state.MinReady, int(b.Status.DesiredHealthy))
			state.Changing = state.Changing || b.Status.ObservedGeneration != b.Generation
		}
	}
	return nil
}
