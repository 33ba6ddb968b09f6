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

// adopt makes the set the owner of the pods, if it is still there and stays. A pod that
// got another controller meanwhile keeps it: the API server refuses a second one.
func (d Driver) adopt(ctx context.Context, obj *appv1.PodSet, pods []podset.Pod) error {
	if err := d.same(ctx, obj); err != nil {
		return err
	}
	return d.hands.inParallel(len(pods), func(i int) error {
		return d.patch(ctx, obj, pods[i], map[string]any{
			"ownerReferences": []any{metav1.NewControllerRef(obj, podset.Kind)},
			"labels":          map[string]string{podset.LabelTemplate: podset.Fingerprint(obj)},
		})
	})
}

// letGo takes the set's owner reference away, so that the pods outlive the set.
func (d Driver) letGo(ctx context.Context, obj *appv1.PodSet, pods []podset.Pod) error {
	return d.hands.inParallel(len(pods), func(i int) error { return d.disown(ctx, obj, pods[i]) })
}

func (d Driver) disown(ctx context.Context, obj *appv1.PodSet, p podset.Pod) error {
	return d.patch(ctx, obj, p, map[string]any{
		"ownerReferences": []any{map[string]any{"$patch": "delete", "uid": obj.UID}},
	})
}

// patch changes the metadata of exactly this pod, not of another of its name.
func (d Driver) patch(ctx context.Context, obj *appv1.PodSet, p podset.Pod, metadata map[string]any) error {
	metadata["uid"] = p.UID
	raw, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	err = d.client.Patch(ctx, shell(obj, p), client.RawPatch(types.StrategicMergePatchType, raw))
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return &lifecycle.Deferred{Reason: fmt.Sprintf("pod %q has changed hands meanwhile", p.Name)}
	case err != nil:
		return fmt.Errorf("cannot change the owner of pod %q: %w", p.Name, err)
	}
	return nil
}
