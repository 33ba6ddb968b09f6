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
	// LabelTemplate is the fingerprint of the template that a pod was created from.
	LabelTemplate = "governor.dev/template"

	// AnnotationAttempt counts the predecessors of the pod that finished soon after their
	// start.
	AnnotationAttempt = "governor.dev/attempt"
)

// Kind is the kind of the pods' owner.
var Kind = appv1.GroupVersion.WithKind("PodSet")

// Resources returns nothing: steps create the pods.
func (Planner) Resources(*appv1.PodSet, World) ([]lifecycle.Object, error) { return nil, nil }

// Selector returns the labels of the pods of a set. Two sets in a namespace never share
// pods.
func Selector(set string) map[string]string {
	return map[string]string{lifecycle.LabelApp: Name, lifecycle.LabelInstance: set}
}

// PodFor returns the pod of that name, created from the template with that fingerprint. It
// has as few labels as possible: each one costs the API server time, for hundreds of pods.
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

// Fingerprint identifies the template. It depends on the declared fields only, so that
// neither a newer operator nor a newer Kubernetes replaces pods.
func Fingerprint(want *appv1.PodSet) string {
	var declared any
	raw, err := json.Marshal(want.Spec.Template)
	if err == nil {
		err = json.Unmarshal(raw, &declared)
	}
	if err != nil {
		panic(fmt.Sprintf("cannot encode a decoded template as JSON: %v", err))
	}
	return lifecycle.Digest(withoutUnset(declared))
}

// withoutUnset returns the value without unset fields. One version of a library writes an
// unset field as an empty object or null, and the next version omits it.
func withoutUnset(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		if list, ok := value.([]any); ok {
			for i := range list {
				list[i] = withoutUnset(list[i])
			}
		}
		return value
	}
	for name, field := range fields {
		field = withoutUnset(field)
		inner, isObject := field.(map[string]any)
		if field == nil || isObject && len(inner) == 0 && omittable[name] {
			delete(fields, name)
		}
	}
	return fields
}

// omittable are the fields in which an empty object means the same as no object. Others, such
// as emptyDir, have a meaning when empty.
var omittable = map[string]bool{"resources": true, "metadata": true, "spec": true, "labels": true, "annotations": true}

// maxUnavailable returns how many pods may be unavailable because their template changed.
func maxUnavailable(want *appv1.PodSet) int {
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

// minAvailable returns how many pods must stay available during a template change.
func minAvailable(want *appv1.PodSet) int {
	return max(0, int(want.Spec.Replicas)-maxUnavailable(want))
}

// Images returns those of the template if a step creates a pod.
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
