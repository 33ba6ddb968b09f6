package driver

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// markRemoval records on the member's claim that Governor removes the member with the ID, or removes
// that record if the ID is empty. The mark comes before the removal, so that a crash in between leaves
// a member that is listed, and whose claim therefore stays.
func (d *Driver) markRemoval(ctx context.Context, p parts, member, id string) error {
	seen := p.claims[member]
	if seen == nil {
		return nil
	}
	claim := seen.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	if claim.Annotations[etcd.AnnotationRemoving] = etcd.RemovalMark(id, string(claim.UID)); id == "" {
		delete(claim.Annotations, etcd.AnnotationRemoving)
	}
	if err := d.client.Patch(ctx, claim, client.MergeFrom(seen)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot mark the claim of %s: %w", member, err)
	}
	return nil
}

// removing reports whether Governor is removing the member of the claim.
func removing(claim *corev1.PersistentVolumeClaim) bool {
	id, uid, _ := strings.Cut(claim.Annotations[etcd.AnnotationRemoving], ".")
	return id != "" && uid == string(claim.UID)
}

// deleteMember deletes the StatefulSet and the pod before the volume that the pod uses. It deletes a
// claim only if Governor removed its member, and if the API server permits it.
func (d *Driver) deleteMember(ctx context.Context, p parts, s lifecycle.Step) error {
	if set := p.sets[s.Target]; set != nil {
		if err := d.remove(ctx, set); err != nil {
			return err
		}
	}
	if left := p.pods[s.Target]; left != nil && alive(left) {
		if err := d.remove(ctx, left); err != nil {
			return err
		}
	}
	claim := p.claims[s.Target]
	if claim == nil || !removing(claim) || s.Args[etcd.ArgRetention] == string(etcdv1.RetentionRetain) {
		return nil
	}
	if err := d.remove(ctx, claim); !refusesDeletion(err) {
		return err
	}
	return d.markRemoval(ctx, p, s.Target, "")
}

// refusesDeletion reports that an admission policy or the operator's rights permit no deletion. The volume
// is then kept and reported as one of a member that a user removed: repairs must not wait for it.
func refusesDeletion(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }
