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

// goesWithin is how long an object may take to go that no finalizer of others keeps. A
// deletion in the foreground waits for the pod.
const goesWithin = time.Minute

// kept says that the object is being deleted and does not go: a finalizer of another
// controller keeps it, or Kubernetes has had time enough.
func kept(obj metav1.Object, now time.Time) bool {
	at := obj.GetDeletionTimestamp()
	return at != nil && (len(apply.ForeignFinalizers(obj)) > 0 || now.Sub(at.Time) > goesWithin)
}

// heldSets are the cluster's StatefulSets that are being deleted and do not go, by the names
// of their members.
func heldSets(want *etcdv1.EtcdCluster, sets []appsv1.StatefulSet, now time.Time) map[string]*appsv1.StatefulSet {
	return byMember(sets, "", func(s *appsv1.StatefulSet) bool { return metav1.IsControlledBy(s, want) && kept(s, now) })
}

// findObstacles adds what keeps members from being started. Names that may be taken are
// read live, and only of members that lack the object.
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
	if door := p.doors[m.Name]; door != nil && kept(door, d.now()) {
		return d.inTheWay(want, door), nil
	}
	if p.doors[m.Name] == nil {
		if o, err := d.holder(ctx, want, etcd.BootstrapConfigName(m.Name), &corev1.ConfigMap{}); o.Kind != "" || err != nil {
			return o, err
		}
	}
	if held := p.held[m.Name]; held != nil {
		return d.inTheWay(want, held), nil
	}
	if m.Set.Exists {
		return etcd.Obstacle{}, nil
	}
	return d.holder(ctx, want, m.Name, &appsv1.StatefulSet{})
}

// holder looks up who has the name.
func (d *Driver) holder(ctx context.Context, want *etcdv1.EtcdCluster, name string, obj client.Object) (etcd.Obstacle, error) {
	found, err := d.find(ctx, want, name, obj)
	if err != nil || !found {
		return etcd.Obstacle{}, err
	}
	return d.inTheWay(want, obj), nil
}

// inTheWay says why the cluster cannot have the object, in the words of what would be
// applied. What is only about to go is waited for.
func (d *Driver) inTheWay(want *etcdv1.EtcdCluster, obj client.Object) etcd.Obstacle {
	var foreign *apply.ForeignError
	var going *apply.StillDeletingError
	switch err := apply.Taken(d.client.Scheme(), etcd.Name, want, obj); {
	case errors.As(err, &foreign):
		return etcd.Obstacle{Kind: foreign.Kind, Name: foreign.Name, Owner: foreign.Owner}
	case errors.As(err, &going) && kept(obj, d.now()):
		return etcd.Obstacle{Kind: going.Kind, Name: going.Name, Going: true, Finalizers: strings.Join(going.Finalizers, ", ")}
	}
	return etcd.Obstacle{}
}
