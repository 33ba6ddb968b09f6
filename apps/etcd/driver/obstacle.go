package driver

import (
	"context"
	"errors"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
)

// deletionWithin is how long a deletion may take that no foreign finalizer delays. A foreground
// deletion waits for the pod.
const deletionWithin = time.Minute

// deletionStuck reports that the deletion of the object does not finish: a finalizer of another
// controller delays it, or it takes too long.
func deletionStuck(obj metav1.Object, now time.Time) bool {
	at := obj.GetDeletionTimestamp()
	return at != nil && (len(apply.ForeignFinalizers(obj)) > 0 || now.Sub(at.Time) > deletionWithin)
}

// findStuckSets returns the cluster's StatefulSets whose deletion does not finish, by member.
func findStuckSets(want *etcdv1.EtcdCluster, sets []appsv1.StatefulSet, now time.Time) map[string]*appsv1.StatefulSet {
	return byMember(sets, "", func(s *appsv1.StatefulSet) bool { return metav1.IsControlledBy(s, want) && deletionStuck(s, now) })
}

// findObstacles adds what keeps members from starting. It reads names that may be taken from the
// API server, and only for members that lack the object.
func (d *Driver) findObstacles(ctx context.Context, want *etcdv1.EtcdCluster, p parts, members []etcd.Member) error {
	for i := range members {
		m := &members[i]
		if m.Unmanaged {
			continue
		}
		found, err := d.obstacle(ctx, want, p, *m)
		if err != nil {
			return err
		}
		m.Obstacle = found
	}
	return nil
}

func (d *Driver) obstacle(ctx context.Context, want *etcdv1.EtcdCluster, p parts, m etcd.Member) (etcd.Obstacle, error) {
	if config := p.bootstrapConfigs[m.Name]; config != nil && deletionStuck(config, d.now()) {
		return d.obstacleFrom(want, config), nil
	}
	if p.bootstrapConfigs[m.Name] == nil {
		if o, err := d.objectNamed(ctx, want, etcd.BootstrapConfigName(m.Name), &corev1.ConfigMap{}); o.Kind != "" || err != nil {
			return o, err
		}
	}
	if stuckSets := p.stuckSets[m.Name]; stuckSets != nil {
		return d.obstacleFrom(want, stuckSets), nil
	}
	if claim := p.foreignClaims[m.Name]; claim != nil {
		return etcd.Obstacle{Kind: "PersistentVolumeClaim", Name: claim.Name}, nil
	}
	if pod := p.foreignPods[m.Name]; pod != nil {
		return d.obstacleFrom(want, pod), nil
	}
	if m.Set.Exists {
		return etcd.Obstacle{}, nil
	}
	return d.objectNamed(ctx, want, m.Name, &appsv1.StatefulSet{})
}

// objectNamed checks for an existing object with the name.
func (d *Driver) objectNamed(ctx context.Context, want *etcdv1.EtcdCluster, name string, obj client.Object) (etcd.Obstacle, error) {
	found, err := d.find(ctx, want, name, obj)
	if err != nil || !found {
		return etcd.Obstacle{}, err
	}
	return d.obstacleFrom(want, obj), nil
}

// obstacleFrom explains why the cluster cannot have the object, as the apply would. It does not
// report a deletion that is still within its time.
func (d *Driver) obstacleFrom(want *etcdv1.EtcdCluster, obj client.Object) etcd.Obstacle {
	var foreign *apply.ForeignError
	var terminating *apply.StillDeletingError
	switch err := apply.Taken(d.client.Scheme(), etcd.Name, want, obj); {
	case errors.As(err, &foreign):
		return etcd.Obstacle{Kind: foreign.Kind, Name: foreign.Name, Owner: foreign.Owner}
	case errors.As(err, &terminating) && deletionStuck(obj, d.now()):
		return etcd.Obstacle{Kind: terminating.Kind, Name: terminating.Name, Going: true, Finalizers: strings.Join(terminating.Finalizers, ", ")}
	}
	return etcd.Obstacle{}
}
