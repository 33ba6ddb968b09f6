package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/governor-dev/governor/lifecycle"
)

// belongings are the members and volumes of an object in the cluster.
type belongings struct {
	// Members are the workloads, and the pods without a workload.
	Members []member `json:"members"`
	// UnusedVolumes are volumes that no pod uses.
	UnusedVolumes []volume `json:"unusedVolumes,omitempty"`
}

// member is one workload, such as the StatefulSet of a member.
type member struct {
	Name string `json:"name"`
	// Role, Health, Version and Problem are from the object's status; empty without it.
	Role    string `json:"role,omitempty"`
	Health  string `json:"health,omitempty"`
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"`
	Pods    []pod  `json:"pods"`
}

type pod struct {
	Name     string   `json:"name"`
	Health   string   `json:"health"`
	Version  string   `json:"version,omitempty"`
	Node     string   `json:"node,omitempty"`
	Restarts int32    `json:"restarts,omitempty"`
	Volumes  []volume `json:"volumes,omitempty"`
}

type volume struct {
	Name  string `json:"name"`
	Phase string `json:"phase"`
	Size  string `json:"size,omitempty"`
}

// belongings returns the sources of the object's pods, claims and workloads.
func (t *target) belongings() []source {
	selector := labels.SelectorFromSet(labels.Set{lifecycle.LabelInstance: t.GetName()}).String() + "," + lifecycle.LabelApp
	sources := []source{
		{kind: podKind}, {kind: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")},
		{kind: appsv1.SchemeGroupVersion.WithResource("statefulsets")}, {kind: appsv1.SchemeGroupVersion.WithResource("deployments")},
	}
	for i := range sources {
		sources[i].namespace, sources[i].labels = t.GetNamespace(), selector
	}
	return sources
}

// grow builds the tree of the object from the found objects.
func grow(obj *unstructured.Unstructured, found catch) belongings {
	found = own(obj, found)
	left := map[string]volume{}
	for _, c := range as[corev1.PersistentVolumeClaim](found[1]) {
		v := volume{Name: c.Name, Phase: string(c.Status.Phase)}
		if size, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
			v.Size = resource.NewQuantity(size.Value(), resource.BinarySI).String() // some storage counts bytes
		}
		left[c.Name] = v
	}
	members := map[string]*member{}
	for _, workload := range slices.Concat(found[2], found[3]) {
		members[workload.GetName()] = &member{Name: workload.GetName()}
	}
	for _, m := range statusMembers(obj) {
		members[m.Name] = &m
	}
	for _, p := range as[corev1.Pod](found[0]) {
		name := owner(&p, obj)
		if members[name] == nil {
			members[name] = &member{Name: name}
		}
		members[name].Pods = append(members[name].Pods, podOf(&p, left))
	}
	var all belongings
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m := members[name]
		slices.SortFunc(m.Pods, func(a, b pod) int { return cmp.Compare(a.Name, b.Name) })
		all.Members = append(all.Members, *m)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		all.UnusedVolumes = append(all.UnusedVolumes, left[name])
	}
	return all
}

// own drops objects that belong to an instance of the same name and another kind. The
// application's label on the objects that the instance owns distinguishes them.
func own(obj *unstructured.Unstructured, found catch) catch {
	apps := map[string]bool{}
	for _, some := range found {
		for _, u := range some {
			if metav1.IsControlledBy(u, obj) {
				apps[u.GetLabels()[lifecycle.LabelApp]] = true
			}
		}
	}
	if len(apps) == 0 {
		return found
	}
	ours := make(catch, len(found))
	for i, some := range found {
		for _, u := range some {
			if apps[u.GetLabels()[lifecycle.LabelApp]] {
				ours[i] = append(ours[i], u)
			}
		}
	}
	return ours
}

// statusMembers returns the members of the object's status that have more than a name.
func statusMembers(obj *unstructured.Unstructured) (all []member) {
	for _, of := range records(obj) {
		word := func(key string) string { s, _ := of[key].(string); return s }
		if len(of) > 1 {
			all = append(all, member{
				Name: word("name"), Role: word("role"), Health: word("health"), Version: word("version"), Problem: word("problem"),
			})
		}
	}
	return all
}

// owner returns the name of a pod's workload: the Deployment for its ReplicaSets, and the
// pod itself if the object has no workload.
func owner(p *corev1.Pod, obj *unstructured.Unstructured) string {
	c := metav1.GetControllerOf(p)
	switch {
	case c == nil || c.UID == obj.GetUID():
		return p.Name
	case c.Kind == "ReplicaSet":
		return strings.TrimSuffix(c.Name, "-"+p.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
	}
	return c.Name
}

// podOf converts the pod, and moves its volumes out of left.
func podOf(p *corev1.Pod, left map[string]volume) pod {
	of := pod{Name: p.Name, Health: health(p), Node: p.Spec.NodeName}
	if len(p.Spec.Containers) > 0 {
		of.Version = tag(p.Spec.Containers[0].Image)
	}
	for _, c := range p.Status.ContainerStatuses {
		of.Restarts += c.RestartCount
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

// health returns a pod's state in one word, with the reason if it is not ready.
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
