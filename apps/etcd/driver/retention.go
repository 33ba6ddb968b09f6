package driver

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

var kind = etcdv1.GroupVersion.WithKind("EtcdCluster")

// owns reports whether Kubernetes deletes the volume with the cluster.
func owns(want *etcdv1.EtcdCluster, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == want.UID })
}

// owner is the reference by which garbage collection deletes a claim with its cluster. It is no
// controller reference: an object has at most one controller, and a claim may already have one,
// such as a backup tool.
func owner(want *etcdv1.EtcdCluster) metav1.OwnerReference {
	ref := *metav1.NewControllerRef(want, kind)
	ref.Controller = nil
	return ref
}

// create creates the volume. The cluster owns it unless the spec retains it.
func (d *Driver) create(ctx context.Context, want *etcdv1.EtcdCluster, claim *corev1.PersistentVolumeClaim) error {
	if !etcd.Retains(want) {
		claim.OwnerReferences = []metav1.OwnerReference{owner(want)}
	}
	return d.client.Create(ctx, claim)
}

// setOwners adds or removes the cluster as the owner of its volumes, as the step requires.
// During a deletion it adds no owner to the volume of a member without a StatefulSet: that
// member may be orphaned on purpose. Nor does any step to a claim that is no member's, or a user's: a
// copy of a volume has the labels, and its name may end like a member's.
func (d *Driver) setOwners(ctx context.Context, want *etcdv1.EtcdCluster, v view, s lifecycle.Step) error {
	owned := s.Args[etcd.ArgRetention] == string(etcdv1.RetentionDelete)
	for member, seen := range v.parts.claims {
		orphan := s.Name == etcd.DeleteCluster && v.parts.sets[member] == nil
		isMember := slices.ContainsFunc(v.world.Members, func(m etcd.Member) bool { return m.Name == member && !m.Unmanaged && !m.Volume.OfUser() })
		if owns(want, seen) == owned || owned && (orphan || !isMember) {
			continue
		}
		claim := seen.DeepCopy()
		err := d.edit(ctx, claim, func() {
			claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == want.UID })
			if owned {
				claim.OwnerReferences = append(claim.OwnerReferences, owner(want))
			}
		})
		if err != nil {
			return fmt.Errorf("cannot change the owner of the volume %q: %w", claim.Name, err)
		}
	}
	return nil
}
