package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	case etcd.StartTrial:
		return d.startTrial(ctx, want, v, s)
	case etcd.DeleteTrial:
		return d.deleteTrial(ctx, want, v.parts)
	case etcd.DeleteMember:
		return d.deleteMember(ctx, v.parts, s)
	case etcd.AddToService:
		return d.expose(ctx, v.parts, s.Target, etcd.Exposed)
	case etcd.RemoveFromService:
		return d.expose(ctx, v.parts, s.Target, etcd.Hidden)
	case etcd.SetRetention, etcd.DeleteCluster:
		return d.setOwners(ctx, want, v, s)
	case etcd.ConfigureNetworkPolicy:
		d.networkPolicies.take(want)
		return nil
	case etcd.GrowVolume:
		return d.grow(ctx, v.parts, s)
	case etcd.RestoreStatefulSet:
		return d.restoreSet(ctx, want, v, s)
	case etcd.KeepVolume:
		return d.markRemoval(ctx, v.parts, s.Target, "")
	case etcd.LabelPod, etcd.LabelVolume:
		return d.label(ctx, want, v.parts, s)
	}
	return d.changeEtcd(ctx, want, v, s)
}

// changeEtcd takes a step in etcd. A claim that is a user's, perhaps since the decision, is not marked.
func (d *Driver) changeEtcd(ctx context.Context, want *etcdv1.EtcdCluster, v view, s lifecycle.Step) error {
	ofUser := func(m etcd.Member) bool { return m.Name == s.Target && m.Volume.OfUser() }
	if s.Name == etcd.RemoveMember && s.Args[etcd.ArgRetention] == string(etcdv1.RetentionDelete) && !slices.ContainsFunc(v.world.Members, ofUser) {
		if err := d.markRemoval(ctx, v.parts, s.Target, s.Args[etcd.ArgID]); err != nil {
			return err
		}
	}
	err := d.reconfigure(ctx, v, s)
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
	if err := d.recordVersion(ctx, want, v, s); err != nil {
		return err
	}
	return d.applySet(ctx, want, set)
}

// recordVersion writes the version on the member's volume, and creates the volume if it does not
// exist. A new member uses no volume that Governor did not create for it.
func (d *Driver) recordVersion(ctx context.Context, want *etcdv1.EtcdCluster, v view, s lifecycle.Step) error {
	claim := etcd.Claim(want, s)
	if claim == nil {
		return nil
	}
	claim.Namespace = want.Namespace
	have := &corev1.PersistentVolumeClaim{}
	err := d.live.Get(ctx, client.ObjectKeyFromObject(claim), have)
	if apierrors.IsNotFound(err) {
		have = nil
	}
	switch {
	case client.IgnoreNotFound(err) == nil && d.deletedUnderPod(want, v, s.Target, have):
		return &lifecycle.Deferred{Reason: "the claim of " + s.Target + " was deleted under its pod: only that pod has the data"}
	case have == nil:
		claim.Annotations[etcd.AnnotationMember] = etcd.ClaimMark(want, v.world, s.Target)
		return d.create(ctx, want, claim)
	case err != nil:
		return fmt.Errorf("cannot read the volume of %s: %w", s.Target, err)
	case !etcd.UsesClaim(want, v.world, s.Target, have.Annotations[etcd.AnnotationMember]):
		return &apply.ForeignError{Kind: "PersistentVolumeClaim", Name: claim.Name}
	case have.DeletionTimestamp != nil:
		return &apply.StillDeletingError{Kind: "PersistentVolumeClaim", Name: claim.Name}
	case have.Status.Phase == corev1.ClaimLost:
		return &lifecycle.Deferred{Reason: "the PersistentVolume of " + s.Target + " no longer exists: no new pod can use its claim"}
	}
	annotated := maps.Clone(have.Annotations)
	if annotated == nil {
		annotated = map[string]string{}
	}
	maps.Copy(annotated, claim.Annotations) // earlier releases have not written all of them
	if maps.Equal(annotated, have.Annotations) {
		return nil
	}
	return d.edit(ctx, have, func() { have.Annotations = annotated })
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
	at := slices.IndexFunc(v.world.Members, func(m etcd.Member) bool { return m.Name == s.Target })
	if at < 0 || keepsPod(v.world.Members[at], s) {
		return nil
	}
	var err error
	if v.world.Members[at].Pod.Ready && s.Args[etcd.ArgBudget] != etcd.OverBudget {
		err = d.evict(ctx, running)
	} else {
		err = d.remove(ctx, running)
	}
	if err == nil {
		d.healthTimes.watchAgain(want, s.Target)
	}
	return err
}

// keepsPod reports that the member's pod is the one that the step creates, and can run: the step is done.
func keepsPod(m etcd.Member, s lifecycle.Step) bool {
	p := m.Pod
	same := p.Revision == s.Args[etcd.ArgRevision] && p.Version == s.Args[etcd.ArgVersion] && string(p.Snapshots) == s.Args[etcd.ArgSnapshots]
	fails := p.Ended || p.Trouble != lifecycle.PodProblemNone || p.OtherContainer != "" || m.Volume.AwaitsPod && p.LastWords != ""
	return same && !fails
}

// expose labels the template first, so that a pod created in between has the label.
// Neither patch has a precondition on the resource version, because status updates change it all
// the time.
func (d *Driver) expose(ctx context.Context, p parts, member string, as etcd.Exposure) error {
	exposed := map[string]string{etcd.LabelExposed: string(as)}
	if seen := p.sets[member]; seen != nil {
		set := seen.DeepCopy()
		set.Labels, set.Spec.Template.Labels = labelled(set.Labels, exposed), labelled(set.Spec.Template.Labels, exposed)
		if err := d.client.Patch(ctx, set, client.MergeFrom(seen)); err != nil {
			return fmt.Errorf("cannot label the StatefulSet %q: %w", member, err)
		}
	}
	if seen := p.pods[member]; seen != nil {
		running := seen.DeepCopy()
		running.Labels = labelled(running.Labels, exposed)
		if err := d.client.Patch(ctx, running, client.MergeFrom(seen)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot label the pod of %s: %w", member, err)
		}
	}
	return nil
}

// remove deletes exactly the observed object, not a later one of the same name.
func (d *Driver) remove(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	err := d.client.Delete(ctx, reference(obj), client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %s %q: %w", strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1."), obj.GetName(), err)
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
