package chaos

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

const mergePatch = types.MergePatchType

// Isolated is the label of a pod that VerbIsolate isolates, and of the NetworkPolicy that does so
// and selects by it. Its value is the name of the pod.
const Isolated = "chaos.governor.dev/isolated"

func addFinalizer(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	added := func(all []string) []string { return append(all, chaos.ForeignFinalizer) }
	dropped := func(all []string) []string {
		return slices.DeleteFunc(all, func(f string) bool { return f == chaos.ForeignFinalizer })
	}
	undo := func(ctx context.Context) error { return finalizers(ctx, w, o, dropped) }
	return undo, finalizers(ctx, w, o, added)
}

// finalizers changes the finalizers of the object as it is now.
func finalizers(ctx context.Context, w work, o *unstructured.Unstructured, change func([]string) []string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		before := now.DeepCopy()
		now.SetFinalizers(change(slices.Clone(now.GetFinalizers())))
		return w.client.Patch(ctx, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), w.manager()...)
	})
}

// replace writes the spec back in the version in Detail, without annotations and status,
// as kubectl replace does with an old manifest.
func replace(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	return nil, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		old, err := w.self(ctx, w.client, schema.GroupVersionKind{Group: w.Kind.Group, Version: w.what.Detail, Kind: o.GetKind()})
		if err != nil {
			return err
		}
		old.SetAnnotations(nil)
		old.SetManagedFields(nil)
		unstructured.RemoveNestedField(old.Object, "status")
		return w.client.Update(ctx, old)
	})
}

// swap exchanges the data of the object and of the next one.
func swap(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	if len(w.all) < 2 {
		return nil, fmt.Errorf("%w to swap with", ErrNothing)
	}
	other := w.all[(w.nth+1)%len(w.all)].DeepCopy()
	here, there := o.DeepCopy(), other.DeepCopy()
	o.Object["data"], other.Object["data"] = other.Object["data"], here.Object["data"]
	if err := w.client.Patch(ctx, o, client.MergeFrom(here), w.manager()...); err != nil {
		return nil, err
	}
	return nil, w.client.Patch(ctx, other, client.MergeFrom(there), w.manager()...)
}

// isolate labels the pod, and creates a NetworkPolicy that refuses what comes to it.
func isolate(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), GenerateName: "chaos-" + o.GetName() + "-", Labels: map[string]string{Isolated: o.GetName()}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{Isolated: o.GetName()}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
	undo := together([]undoing{
		func(ctx context.Context) error {
			if policy.Name == "" {
				return nil // it was not created: the API server chooses the name
			}
			return w.client.Delete(ctx, policy)
		},
		func(ctx context.Context) error { return w.isolation(ctx, o, "null") },
	})
	if err := w.isolation(ctx, o, `"`+o.GetName()+`"`); err != nil {
		return undo, err
	}
	return undo, w.client.Create(ctx, policy)
}

func (w work) isolation(ctx context.Context, o *unstructured.Unstructured, label string) error {
	return w.client.Patch(ctx, o.DeepCopy(), client.RawPatch(mergePatch, []byte(`{"metadata":{"labels":{"`+Isolated+`":`+label+`}}}`)), w.manager()...)
}

// takeBack gives every field that the patch set its former value, if nothing else has set
// it since.
func (w work) takeBack(ctx context.Context, before *unstructured.Unstructured) error {
	var patched map[string]any
	if err := json.Unmarshal([]byte(w.what.Patch), &patched); err != nil {
		return fmt.Errorf("only a merge patch can be taken back: %w", err)
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(before.GroupVersionKind())
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
			return err
		}
		back, err := json.Marshal(inverse(patched, before.Object, now.Object))
		if err != nil {
			return err
		}
		return w.client.Patch(ctx, now, client.RawPatch(mergePatch, back), w.manager()...)
	})
}

// inverse is the merge patch that brings back what was before, where the patch holds now.
func inverse(patch, before, now map[string]any) map[string]any {
	back := map[string]any{}
	for field, value := range patch {
		inner, deeper := value.(map[string]any)
		switch {
		case deeper:
			was, _ := before[field].(map[string]any)
			is, _ := now[field].(map[string]any)
			back[field] = inverse(inner, was, is)
		case reflect.DeepEqual(value, now[field]):
			back[field] = before[field] // nil removes what was not there
		}
	}
	return back
}
