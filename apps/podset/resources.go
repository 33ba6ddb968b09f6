package podset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	// LabelTemplate has the fingerprint of the template that a pod was made from.
	LabelTemplate = "governor.dev/template"

	// AnnotationAttempt counts the pods that ended soon after their start before this
	// one.
	AnnotationAttempt = "governor.dev/attempt"
)

// Kind is what the pods' owner is.
var Kind = appv1.GroupVersion.WithKind("PodSet")

// Resources is nothing: pods are made by steps.
func (Planner) Resources(*appv1.PodSet, World) ([]lifecycle.Object, error) { return nil, nil }

// Selector is the labels by which the pods of a set are known. Two sets in a
// namespace never share pods.
func Selector(set string) map[string]string {
	return map[string]string{lifecycle.LabelApp: Name, lifecycle.LabelInstance: set}
}

// PodFor returns the pod of the name, made from the template with that fingerprint. It has
// no label more than are needed: each costs the API server time, hundreds of times.
func PodFor(want *appv1.PodSet, template, name string, attempt int) *corev1.Pod {
	t := want.Spec.Template
	labels := map[string]string{}
	maps.Copy(labels, t.Metadata.Labels)
	maps.Copy(labels, Selector(want.Name))
	labels[LabelTemplate] = template
	annotations := maps.Clone(t.Metadata.Annotations)
	if attempt > 0 {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[AnnotationAttempt] = strconv.Itoa(attempt)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: want.Namespace, Name: name, Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(want, Kind)},
		},
		Spec: *t.Spec.DeepCopy(),
	}
}

// Fingerprint is that of the template. It is made from what is declared and nothing
// else, so that neither a newer operator nor a newer Kubernetes replaces a pod.
func Fingerprint(want *appv1.PodSet) string {
	var declared any
	raw, err := json.Marshal(want.Spec.Template)
	if err == nil {
		err = json.Unmarshal(raw, &declared)
	}
	if err != nil {
		panic(fmt.Sprintf("a template that came as JSON is none: %v", err))
	}
	return lifecycle.Digest(said(declared))
}

// said is the value without what says nothing: fields that were not set are written
// by one version of a library as empty objects or null, and by the next not at all.
func said(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		if list, ok := value.([]any); ok {
			for i := range list {
				list[i] = said(list[i])
			}
		}
		return value
	}
	for name, field := range fields {
		field = said(field)
		inner, isObject := field.(map[string]any)
		if field == nil || isObject && len(inner) == 0 && silent[name] {
			delete(fields, name)
		}
	}
	return fields
}

// silent are the fields whose empty object means the same as none. Others, such as
// emptyDir, say something by being there.
var silent = map[string]bool{"resources": true, "metadata": true, "spec": true, "labels": true, "annotations": true}

// mayBeAway is how many pods may be away because their template changed.
func mayBeAway(want *appv1.PodSet) int {
	share := intstr.FromString("25%")
	if m := want.Spec.MaxUnavailable; m != nil {
		share = *m
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&share, int(want.Spec.Replicas), false)
	if err != nil {
		return 1
	}
	return max(1, n)
}

// promise is how many pods are to be available whatever is done.
func promise(want *appv1.PodSet) int { return max(0, int(want.Spec.Replicas)-mayBeAway(want)) }

// Images implements lifecycle.ImageLister: those of the template, if a step makes a pod.
func (Planner) Images(want *appv1.PodSet, steps []lifecycle.Step) []string {
	if len(steps) == 0 {
		return nil
	}
	var all []string
	for _, c := range slices.Concat(want.Spec.Template.Spec.InitContainers, want.Spec.Template.Spec.Containers) {
		all = append(all, c.Image)
	}
	return all
}
