package driver

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// mayHaveAdditions reports whether fields that others added to the StatefulSet may keep the
// member from running. While its pod runs, they are left alone: a mutating policy may set them.
// So are those that the pod does not have yet: it may need them. Another first ordinal renames the
// pod, and what [etcd.EndangersData] finds must not wait for the next start: neither is left alone.
func mayHaveAdditions(want *etcdv1.EtcdCluster, m etcd.Member, set *appsv1.StatefulSet) bool {
	renamed := set.Spec.Ordinals != nil && set.Spec.Ordinals.Start != 0 || etcd.EndangersData(want, set.Spec.Template.Spec)
	fails := m.Pod.Trouble != lifecycle.PodProblemNone || m.Pod.OtherContainer != ""
	tried := !m.Pod.Stale && set.Status.ObservedGeneration == set.Generation
	return renamed || m.Set.Problem != "" || fails && tried && !m.Pod.Ready
}

// additions returns the fields that others added to the StatefulSet of the API server, and a
// patch that removes them; nothing if there are none. The cache leaves out who manages which
// field.
func (d *Driver) additions(ctx context.Context, want *etcdv1.EtcdCluster, seen etcd.World, m etcd.Member, set *appsv1.StatefulSet) ([]string, *removal, error) {
	declared := declaration(want, seen, m, set)
	if declared == nil {
		return nil, nil, nil
	}
	var live appsv1.StatefulSet
	if err := d.live.Get(ctx, client.ObjectKeyFromObject(set), &live); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if live.UID != set.UID {
		return nil, nil, nil
	}
	fields, rest, err := d.comparer.Additions(want, declared, &live)
	if err != nil || len(fields) == 0 {
		return nil, nil, err
	}
	return fields, &removal{from: &live, to: rest}, nil
}

// removal is a StatefulSet with and without the fields that others added.
type removal struct{ from, to client.Object }

// removeAdditions removes the fields that others added, unless the StatefulSet changes meanwhile.
func (d *Driver) removeAdditions(ctx context.Context, want *etcdv1.EtcdCluster, seen etcd.World, member string, set *appsv1.StatefulSet) error {
	i := slices.IndexFunc(seen.Members, func(m etcd.Member) bool { return m.Name == member })
	if i < 0 {
		return nil
	}
	_, r, err := d.additions(ctx, want, seen, seen.Members[i], set)
	if err != nil || r == nil {
		return err
	}
	onlyThis := client.MergeFromWithOptions(r.from, client.MergeFromWithOptimisticLock{})
	if err := d.client.Patch(ctx, r.to, onlyThis, client.FieldOwner(apply.Manager)); err != nil {
		return fmt.Errorf("cannot remove what others added to the StatefulSet %q: %w", member, err)
	}
	return nil
}
