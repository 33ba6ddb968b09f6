package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// foreignKinds are the kinds of foreign objects next to the instance, with the labels of one of its
// own objects and a similar name.
var foreignKinds = []chaos.Object{
	chaos.PersistentVolumeClaim, chaos.StatefulSet, chaos.Service, chaos.Secret, chaos.ConfigMap, chaos.PodDisruptionBudget, chaos.Pod,
}

// bystander is a foreign object as created.
type bystander struct {
	kind    schema.GroupVersionKind
	key     client.ObjectKey
	uid     types.UID
	content string
}

// placeForeign copies one object of each kind with all its labels, but without an owner, and creates a
// Pod with the name of a member's.
func (s *subject) placeForeign(ctx context.Context) ([]bystander, error) {
	var all []bystander
	for _, kind := range foreignKinds {
		if _, stateless := s.layout.application(); stateless && kind.Kind == chaos.Pod.Kind {
			continue // a ReplicaSet and a PodSet adopt a pod with their labels
		}
		found, err := s.Find(ctx, s.api, kind)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue // such as Secrets without TLS
		}
		o := foreignLike(found[0])
		if kind.Kind == chaos.Pod.Kind {
			foreignPod(o)
		}
		if err := s.api.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("cannot create a foreign %s: %w", kind.Kind, err)
		}
		all = append(all, seenAs(o))
	}
	return all, nil
}

func foreignLike(one unstructured.Unstructured) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(one.GroupVersionKind())
	o.SetNamespace(one.GetNamespace())
	o.SetName(one.GetName() + "-copy")
	labels := maps.Clone(one.GetLabels())
	labels[does.Bystander] = "true"
	o.SetLabels(labels)
	for _, field := range []string{"spec", "data", "type"} {
		if value, ok := one.DeepCopy().Object[field]; ok {
			o.Object[field] = value
		}
	}
	for _, path := range []string{"spec.volumeName", "spec.clusterIP", "spec.clusterIPs"} {
		unstructured.RemoveNestedField(o.Object, strings.Split(path, ".")...)
	}
	if one.GetKind() == chaos.StatefulSet.Kind {
		_ = unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas")
		_ = unstructured.SetNestedField(o.Object, "true", "spec", "template", "metadata", "labels", does.Bystander) // for its ControllerRevision
	}
	return o
}

// foreignPod has the copy of a pod look like that of a member that never was. A gate keeps the scheduler
// from running it.
func foreignPod(o *unstructured.Unstructured) {
	o.SetName(instanceName + "-77-0")
	spec := map[string]any{
		"schedulingGates": []any{map[string]any{"name": "chaos.governor.dev/never"}},
		"containers":      []any{map[string]any{"name": "foreign", "image": "chaos.governor.dev/none:none"}},
	}
	o.Object["spec"] = spec
}

// content is the part of the object that only its writers change. It omits the status and the
// protection finalizers, which Kubernetes' controllers write.
func content(o *unstructured.Unstructured) string {
	owners, _, _ := unstructured.NestedSlice(o.Object, "metadata", "ownerReferences") // without pointers
	return fmt.Sprint(o.GetLabels(), owners, o.Object["spec"], o.Object["data"], o.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"])
}

// foreignTouched names every foreign object that was deleted or changed.
func (s *subject) foreignTouched(ctx context.Context, all []bystander) error {
	var touched error
	for _, b := range all {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(b.kind)
		err := s.api.Get(ctx, b.key, o)
		switch {
		case err != nil:
			touched = errors.Join(touched, fmt.Errorf("the foreign %s %s: %w", b.kind.Kind, b.key.Name, err))
		case o.GetUID() != b.uid || o.GetDeletionTimestamp() != nil:
			touched = errors.Join(touched, fmt.Errorf("the foreign %s %s was deleted", b.kind.Kind, b.key.Name))
		case content(o) != b.content:
			touched = errors.Join(touched, fmt.Errorf("the foreign %s %s was changed from %s to %s", b.kind.Kind, b.key.Name, b.content, content(o)))
		}
	}
	return touched
}
