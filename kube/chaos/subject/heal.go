package subject

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// healed reports whether every object is as it was before, or was replaced.
func (s *Subject) healed(ctx context.Context, m chaos.Manipulation, before []unstructured.Unstructured) (bool, error) {
	for i := range before {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(before[i].GroupVersionKind())
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(&before[i]), now)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if !restored(m, &before[i], now, apierrors.IsNotFound(err)) {
			return false, nil
		}
	}
	return true, nil
}

// restored reports whether the object is as before. A pod that was taken away may be
// replaced by one of another name: how many are ready tells whether it was.
func restored(m chaos.Manipulation, before, now *unstructured.Unstructured, gone bool) bool {
	if m.Object.Kind == chaos.Pod.Kind {
		return m.Takes == chaos.PartNone || gone || now.GetUID() != before.GetUID()
	}
	return !gone && now.GetDeletionTimestamp() == nil && contains(content(now), content(before))
}

// content is what an operator declares of an object.
func content(o *unstructured.Unstructured) map[string]any {
	all := map[string]any{"labels": asAny(o.GetLabels()), "owners": len(o.GetOwnerReferences())}
	for key, value := range o.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			all[key] = value
		}
	}
	return all
}

func asAny(labels map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range labels {
		all[key] = value
	}
	return all
}

// contains reports whether everything in want is in have. What others add to a map stays.
func contains(have, want any) bool {
	wanted, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want)
	}
	had, ok := have.(map[string]any)
	for key, value := range wanted {
		if !ok || !contains(had[key], value) {
			return false
		}
	}
	return true
}
