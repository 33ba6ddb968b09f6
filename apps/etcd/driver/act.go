package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// Act implements lifecycle.Driver. It observes again first: a cache may be outdated, and a
// member may have failed since.
func (d *Driver) Act(ctx context.Context, want *etcdv1.EtcdCluster, seen etcd.World, s lifecycle.Step) error {
	v, err := d.observe(ctx, want)
	if err != nil {
		return err
	}
	if err := etcd.Moved(seen, v.world, s); err != nil {
		return err
	}
	switch s.Name {
	case etcd.FormCluster, etcd.StartMember:
		return d.startEach(ctx, want, v, etcd.Each(s))
	case etcd.Restart:
		return d.restart(ctx, want, v, s)
	case etcd.DeleteMember:
		return d.deleteMember(ctx, v.parts, s)
	case etcd.AddToService:
		return d.addToService(ctx, v.parts, s.Target)
	case etcd.SetRetention, etcd.DeleteCluster:
		return d.setOwners(ctx, want, v.parts, s)
	case etcd.GrowVolume:
		return d.grow(ctx, v.parts, s)
	case etcd.RestoreSet:
		return d.restoreSet(ctx, want, v, s)
	case etcd.LabelPod:
		return d.labelPod(ctx, v.parts, s.Target)
	case etcd.LabelVolume:
		return d.labelVolume(ctx, want, v.parts, s.Target)
	}
	err = d.reconfigure(ctx, v, s)
	if unauthorized(err) {
		return &lifecycle.DecisionError{Decision: etcd.Unauthorized(want, v.user, s)}
	}
	return err
}

func (d *Driver) startEach(ctx context.Context, want *etcdv1.EtcdCluster, v view, steps []lifecycle.Step) error {
	errs := make([]error, len(steps))
	var all sync.WaitGroup
	for i, s := range steps {
		all.Go(func() { errs[i] = d.start(ctx, want, v, s) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// start writes the version on the volume before the StatefulSet can use it.
func (d *Driver) start(ctx context.Context, want *etcdv1.EtcdCluster, v view, s lifecycle.Step) error {
	set, err := etcd.StatefulSet(want, v.world, s)
	if err != nil {
		return err
	}
	if err := d.notOrphaned(ctx, want, s.Target); err != nil {
		return err
	}
	if err := d.recordVersion(ctx, want, s); err != nil {
		return err
	}
	return apply.Object(ctx, d.client, d.live, want, set)
}

// recordVersion writes the version on the member's volume, and creates the volume if it does not
// exist.
func (d *Driver) recordVersion(ctx context.Context, want *etcdv1.EtcdCluster, s lifecycle.Step) error {
	claim := etcd.Claim(want, s)
	if claim == nil {
		return nil
	}
	claim.Namespace = want.Namespace
	have := &corev1.PersistentVolumeClaim{}
	err := d.live.Get(ctx, client.ObjectKeyFromObject(claim), have)
	switch {
	case apierrors.IsNotFound(err):
		return d.create(ctx, want, claim)
	case err != nil:
		return fmt.Errorf("cannot read the volume of %s: %w", s.Target, err)
	case have.DeletionTimestamp != nil:
		return &apply.StillDeletingError{Kind: "PersistentVolumeClaim", Name: claim.Name}
	case have.Annotations[etcd.AnnotationVersion] == claim.Annotations[etcd.AnnotationVersion]:
		return nil
	}
	return d.edit(ctx, have, func() {
		if have.Annotations == nil {
			have.Annotations = map[string]string{}
		}
		have.Annotations[etcd.AnnotationVersion] = claim.Annotations[etcd.AnnotationVersion]
	})
}

// edit patches the object unless another client has changed it.
func (d *Driver) edit(ctx context.Context, obj client.Object, change func()) error {
	base := obj.DeepCopyObject().(client.Object)
	change()
	return d.client.Patch(ctx, obj, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// restart deletes the pod if it differs from what the StatefulSet would create, or cannot run.
// It evicts a serving pod, so that restarts and node drains share a disruption budget.
func (d *Driver) restart(ctx context.Context, want *etcdv1.EtcdCluster, v view, s lifecycle.Step) error {
	if err := d.start(ctx, want, v, s); err != nil {
		return err
	}
	running := v.parts.pods[s.Target]
	if running == nil || running.DeletionTimestamp != nil {
		return nil
	}
	p, _ := podOf(running)
	same := p.Revision == s.Args[etcd.ArgRevision] && p.Version == s.Args[etcd.ArgVersion] &&
		running.Annotations[etcd.AnnotationSnapshots] == s.Args[etcd.ArgSnapshots]
	if same && !p.Ended && p.Trouble == lifecycle.PodProblemNone {
		return nil
	}
	if p.Ready && s.Args[etcd.ArgBudget] != etcd.OverBudget {
		return d.evict(ctx, running)
	}
	return d.remove(ctx, running)
}

// addToService labels the template first, so that a pod created in between has the label.
// Neither patch has a precondition on the resource version, because status updates change it all
// the time.
func (d *Driver) addToService(ctx context.Context, p parts, member string) error {
	if seen := p.sets[member]; seen != nil {
		set := seen.DeepCopy()
		set.Labels[etcd.LabelExposed], set.Spec.Template.Labels[etcd.LabelExposed] = string(etcd.Exposed), string(etcd.Exposed)
		if err := d.client.Patch(ctx, set, client.MergeFrom(seen)); err != nil {
			return fmt.Errorf("cannot label the StatefulSet %q: %w", member, err)
		}
	}
	if seen := p.pods[member]; seen != nil {
		running := seen.DeepCopy()
		running.Labels[etcd.LabelExposed] = string(etcd.Exposed)
		if err := d.client.Patch(ctx, running, client.MergeFrom(seen)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot label the pod of %s: %w", member, err)
		}
	}
	return nil
}

// deleteMember deletes the StatefulSet before the volume that its pod uses. It also deletes a
// pod that is orphaned, or whose StatefulSet does not disappear.
func (d *Driver) deleteMember(ctx context.Context, p parts, s lifecycle.Step) error {
	if set := p.sets[s.Target]; set != nil {
		if err := d.remove(ctx, set); err != nil {
			return err
		}
	}
	if left := p.pods[s.Target]; left != nil && (orphaned(left) || p.stuckSets[s.Target] != nil) {
		if err := d.remove(ctx, left); err != nil {
			return err
		}
	}
	if claim := p.claims[s.Target]; claim != nil {
		return d.remove(ctx, claim)
	}
	return nil
}

// remove deletes exactly the observed object, not a later one of the same name.
func (d *Driver) remove(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	err := d.client.Delete(ctx, reference(obj), client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %T %q: %w", obj, obj.GetName(), err)
	}
	return nil
}

// reference returns a copy that callers may change: objects from the cache are shared.
func reference(obj client.Object) client.Object {
	meta := metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), Labels: obj.GetLabels(),
	}
	switch obj.(type) {
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: meta}
	case *corev1.Pod:
		return &corev1.Pod{ObjectMeta: meta}
	}
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta}
}
