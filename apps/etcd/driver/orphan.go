package driver

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
)

// notOrphaned returns an error if the member's name is that of a StatefulSet which runs on
// the volume of another cluster: one of the same name that was deleted with
// --cascade=orphan, and serves on. To adopt it would restart it without its data.
func (d *Driver) notOrphaned(ctx context.Context, want *etcdv1.EtcdCluster, member string) error {
	set := &appsv1.StatefulSet{}
	err := d.live.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: member}, set)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot see whose StatefulSet %q is: %w", member, err)
	}
	if metav1.GetControllerOf(set) != nil || !alive(set) {
		return nil // it is ours, or goes
	}
	for _, v := range set.Spec.Template.Spec.Volumes {
		if v.Name == "data" && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName != etcd.ClaimName(want, member) {
			return &apply.ForeignError{Kind: "StatefulSet", Name: member, Owner: "the volume " + v.PersistentVolumeClaim.ClaimName + " of another cluster"}
		}
	}
	return nil
}
