package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/governor-dev/governor/lifecycle"
)

// tree is one object with what belongs to it.
type tree struct {
	state
	// Members are the workloads, or the pods that have none.
	Members []member `json:"members"`
	// Loose are volumes that no pod has.
	Loose []volume `json:"looseVolumes,omitempty"`
	// Last is the newest entry of the history, in short.
	Last string `json:"lastStep,omitempty"`
}

// member is one workload, such as the StatefulSet of a member.
type member struct {
	Name string `json:"name"`
	Pods []pod  `json:"pods"`
}

type pod struct {
	Name    string   `json:"name"`
	Health  string   `json:"health"`
	Version string   `json:"version,omitempty"`
	Node    string   `json:"node,omitempty"`
	Volumes []volume `json:"volumes,omitempty"`
}

type volume struct {
	Name  string `json:"name"`
	Phase string `json:"phase"`
	Size  string `json:"size,omitempty"`
}

// one shows the object as a tree.
func (s *status) one(ctx context.Context, args []string) error {
	t, err := s.find(args)
	if err != nil {
		return err
	}
	of := tree{state: s.state(t.Unstructured)}
	if book, err := t.book(ctx); err == nil {
		if last, ok := book.Last(); ok {
			of.Last = fmt.Sprintf("%s, %s at %s", took(last), last.Result, moment(last.At))
		}
	}
	if err := of.grow(ctx, t); err != nil {
		return err
	}
	return s.write(s.session, of, func() { s.draw(of) })
}

// grow finds what belongs to the object, by its labels.
func (of *tree) grow(ctx context.Context, t *target) error {
	selector := labels.SelectorFromSet(labels.Set{lifecycle.LabelInstance: t.GetName()}).String() + "," + lifecycle.LabelApp
	pods, err := listed[corev1.Pod](ctx, t, corev1.SchemeGroupVersion.WithResource("pods"), selector)
	if err != nil {
		return err
	}
	claims, err := listed[corev1.PersistentVolumeClaim](ctx, t, corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), selector)
	if err != nil {
		return err
	}
	sets, err := listed[appsv1.StatefulSet](ctx, t, appsv1.SchemeGroupVersion.WithResource("statefulsets"), selector)
	if err != nil {
		return err
	}
	volumes := map[string]volume{}
	for _, c := range claims {
		size := c.Status.Capacity[corev1.ResourceStorage]
		volumes[c.Name] = volume{Name: c.Name, Phase: string(c.Status.Phase), Size: size.String()}
	}
	byMember := map[string][]pod{}
	for _, s := range sets {
		byMember[s.Name] = nil
	}
	for i := range pods {
		byMember[owner(&pods[i])] = append(byMember[owner(&pods[i])], podOf(&pods[i], volumes))
	}
	for name, pods := range byMember {
		slices.SortFunc(pods, func(a, b pod) int { return cmp.Compare(a.Name, b.Name) })
		of.Members = append(of.Members, member{Name: name, Pods: pods})
	}
	for _, v := range volumes {
		of.Loose = append(of.Loose, v)
	}
	slices.SortFunc(of.Members, func(a, b member) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(of.Loose, func(a, b volume) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// listed lists what belongs to the object, as what it is.
func listed[T any](ctx context.Context, t *target, kind schema.GroupVersionResource, selector string) ([]T, error) {
	items, err := t.related(ctx, kind, selector)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(items))
	for i, item := range items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// owner is the workload of a pod; a Deployment for its ReplicaSets.
func owner(p *corev1.Pod) string {
	c := metav1.GetControllerOf(p)
	switch {
	case c == nil:
		return p.Name
	case c.Kind == "ReplicaSet":
		return strings.TrimSuffix(c.Name, "-"+p.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
	}
	return c.Name
}

// podOf takes the pod's volumes out of those that are left.
func podOf(p *corev1.Pod, left map[string]volume) pod {
	of := pod{Name: p.Name, Health: health(p), Node: p.Spec.NodeName}
	if len(p.Spec.Containers) > 0 {
		image := p.Spec.Containers[0].Image
		of.Version = image[strings.LastIndexAny(image, ":/")+1:]
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		if claim, ok := left[name]; ok {
			of.Volumes = append(of.Volumes, claim)
			delete(left, name)
		} else {
			of.Volumes = append(of.Volumes, volume{Name: name, Phase: "Missing"})
		}
	}
	return of
}

// health is a pod's state in a word, and why if it is not ready.
func health(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "Leaving"
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return "Ready"
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return c.Reason
		}
	}
	if p.Status.Phase == corev1.PodRunning {
		return "NotReady"
	}
	return string(p.Status.Phase)
}

func (s *status) draw(of tree) {
	s.say("%s in %s: %s", of.Object, of.Namespace, verdict(of.state))
	if of.Last != "" {
		s.say("last step: %s", of.Last)
	}
	for _, m := range of.Members {
		s.say("├─ %s%s", m.Name, absent(m))
		for _, p := range m.Pods {
			s.say("│  └─ pod %s  %s  %s  on %s", p.Name, p.Health, p.Version, cmp.Or(p.Node, "no node"))
			for _, v := range p.Volumes {
				s.say("│     └─ volume %s  %s  %s", v.Name, v.Phase, v.Size)
			}
		}
	}
	for _, v := range of.Loose {
		s.say("├─ volume %s  %s  %s  (no pod has it)", v.Name, v.Phase, v.Size)
	}
}

func absent(m member) string {
	if len(m.Pods) == 0 {
		return "  has no pod"
	}
	return ""
}

func verdict(st state) string {
	switch st.Ready {
	case string(metav1.ConditionTrue):
		return "ready. " + st.Message
	case lifecycle.Paused:
		return "paused. " + st.Message
	}
	return fmt.Sprintf("not ready, %s. %s", st.Reason, st.Message)
}
