package driver

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle"
)

// adopt makes the set the owner of the pods, unless the set has changed or is being
// deleted. A pod that has another controller by then keeps it: the API server rejects a
// second controller.
func (d Driver) adopt(ctx context.Context, obj *appv1.PodSet, pods []podset.Pod) error {
	if err := d.checkSetUnchanged(ctx, obj); err != nil {
		return err
	}
	return d.requests.inParallel(len(pods), func(i int) error {
		return d.patch(ctx, obj, pods[i], map[string]any{
			"ownerReferences": []any{metav1.NewControllerRef(obj, podset.Kind)},
			"labels":          map[string]string{podset.LabelTemplate: podset.Fingerprint(obj)},
		})
	})
}

// release removes the set's owner reference, so that the pods outlive the set.
func (d Driver) release(ctx context.Context, obj *appv1.PodSet, pods []podset.Pod) error {
	return d.requests.inParallel(len(pods), func(i int) error { return d.removeOwner(ctx, obj, pods[i]) })
}

func (d Driver) removeOwner(ctx context.Context, obj *appv1.PodSet, p podset.Pod) error {
	return d.patch(ctx, obj, p, map[string]any{
		"ownerReferences": []any{map[string]any{"$patch": "delete", "uid": obj.UID}},
	})
}

// patch changes the metadata of exactly this pod, not of a new pod of the same name.
func (d Driver) patch(ctx context.Context, obj *appv1.PodSet, p podset.Pod, metadata map[string]any) error {
	metadata["uid"] = p.UID
	raw, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	err = d.client.Patch(ctx, ref(obj, p), client.RawPatch(types.StrategicMergePatchType, raw))
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return &lifecycle.Deferred{Reason: fmt.Sprintf("pod %q has another controller now", p.Name)}
	case err != nil:
		return fmt.Errorf("cannot change the owner of pod %q: %w", p.Name, err)
	}
	return nil
}
