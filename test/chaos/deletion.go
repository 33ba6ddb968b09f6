package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// deletion is the move that deletes the instance, if the composition has one.
func deletion(c chaos.Composition, all chaos.Catalogue) (chaos.Manipulation, bool) {
	for _, move := range c {
		if m, ok := all.Named(move.Name); ok && m.DeletesInstance() {
			return m, true
		}
	}
	return chaos.Manipulation{}, false
}

// deletionLast moves the deletions of the instance to the end and keeps one of them: other moves need
// an instance.
func deletionLast(c chaos.Composition, all chaos.Catalogue) chaos.Composition {
	var before, last chaos.Composition
	for _, move := range c {
		if m, ok := all.Named(move.Name); ok && m.DeletesInstance() {
			last = chaos.Composition{move}
		} else {
			before = append(before, move)
		}
	}
	return append(before, last...)
}

// inventory is what an instance consists of right before its deletion.
type inventory struct {
	what      chaos.Manipulation
	uid       types.UID
	clusterID string
	owned     []bystander // by the instance, or by a StatefulSet that it owns
	kept      []bystander // claims without an owner
	pods      []bystander
	only      bool // the adversary did nothing else
}

// inventoryKinds are the kinds of objects that an instance has.
func inventoryKinds() []chaos.Object {
	kinds := slices.DeleteFunc(slices.Clone(restKinds), func(o chaos.Object) bool { return o.Custom })
	return append(kinds, chaos.Pod)
}

// depart takes the inventory. With all but orphans, the observers end: what they watch is about to go.
func (v *adversary) depart(ctx context.Context, what chaos.Manipulation) error {
	obj, err := v.object(ctx)
	if err != nil {
		return err
	}
	i := &inventory{what: what, uid: obj.UID, clusterID: obj.Status.ClusterID, only: len(v.moves) == 0}
	owners := map[types.UID]bool{obj.UID: true}
	for _, kind := range inventoryKinds() {
		found, err := v.Find(ctx, v.api, kind)
		if err != nil {
			return err
		}
		for n := range found {
			i.add(&found[n], owners)
		}
	}
	if v.departed = i; what.Detail != "Orphan" && v.observers != nil {
		v.observers.stop()
	}
	return nil
}

// add sorts the object in. Sets come before the pods that they own.
func (i *inventory) add(o *unstructured.Unstructured, owners map[types.UID]bool) {
	one := seenAs(o)
	owned := slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return owners[r.UID] })
	if owners[o.GetUID()] = owned; owned && o.GetDeletionTimestamp() == nil {
		i.owned = append(i.owned, one)
	}
	switch {
	case o.GetKind() == chaos.PersistentVolumeClaim.Kind && !owned && o.GetDeletionTimestamp() == nil:
		i.kept = append(i.kept, one)
	case o.GetKind() == chaos.Pod.Kind && owned:
		i.pods = append(i.pods, one)
	}
}

// exists reports whether that very object is there, and not being deleted.
func (v *adversary) exists(ctx context.Context, b bystander) (there, going bool, err error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(b.kind)
	err = v.api.Get(ctx, b.key, o)
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	there = err == nil && o.GetUID() == b.uid
	return there, there && o.GetDeletionTimestamp() != nil, err
}

// allGone returns an error while one of the objects is there.
func (v *adversary) allGone(ctx context.Context, all []bystander) error {
	for _, b := range all {
		if there, _, err := v.exists(ctx, b); err != nil || there {
			return fmt.Errorf("%s %s is there: %w", b.kind.Kind, b.key.Name, errors.Join(err, errNotYet))
		}
	}
	return nil
}

// stays returns an error if one of the objects is gone, or being deleted, and the adversary did not
// delete it.
func (v *adversary) stays(ctx context.Context, all []bystander) error {
	var missing error
	for _, b := range all {
		there, going, err := v.exists(ctx, b)
		if err == nil && (!there || going) && !v.deletedClaim(b.key.Name) {
			missing = errors.Join(missing, fmt.Errorf("the %s %s was deleted", b.kind.Kind, b.key.Name))
		}
	}
	return missing
}

// judgeDeletion checks what the deletion left, creates the instance again, and checks that it has
// nothing of the former one.
func (v *adversary) judgeDeletion(ctx context.Context, o *observers) verdict {
	var out verdict
	fail := func(words string, err error) bool {
		if err != nil {
			out.violations = append(out.violations, words+": "+err.Error())
		}
		return err != nil
	}
	began, i := time.Now(), v.departed
	left := v.goneWithInstance
	if i.what.Detail == "Orphan" {
		left = v.orphansStay
	}
	if fail("after the deletion with "+i.what.Detail, left(ctx)) {
		return v.concluded(ctx, o, out)
	}
	if i.what.Verb == chaos.VerbDelete && fail("creating the instance again", v.declare(ctx)) {
		return v.concluded(ctx, o, out)
	}
	if i.what.Detail == "Orphan" {
		fail("beside an instance of the same name", v.orphansKeepTheName(ctx, o))
	}
	o.stop()
	if !fail("the instance that was created again", v.heals(ctx, &out, began)) {
		fail("the instance that was created again", v.isNew(ctx))
		fail("the instance that was created again", v.rests(ctx, v.rest))
	}
	fail("volumes that outlive their instance", v.stays(ctx, i.kept))
	return v.concluded(ctx, o, out)
}

func (v *adversary) concluded(ctx context.Context, o *observers, out verdict) verdict {
	o.stop()
	v.examine(ctx, o, &out, false)
	return out
}

// goneWithInstance waits until everything that the instance owned is gone. Claims follow the retention.
func (v *adversary) goneWithInstance(ctx context.Context) error {
	i := v.departed
	if retained := v.born.Storage.Retention != etcdv1.RetentionDelete && !v.layout.volatile(); i.only && !v.layout.volatile() && (len(i.kept) > 0) != retained {
		return fmt.Errorf("with retention %q, %d claims have no owner", v.born.Storage.Retention, len(i.kept))
	}
	if err := await(ctx, v.heal, time.Second, func(ctx context.Context) error { return v.allGone(ctx, i.owned) }); err != nil {
		return err
	}
	return v.stays(ctx, i.kept)
}

// orphansStay checks that the objects of an orphaned instance are there and serve for a while.
func (v *adversary) orphansStay(ctx context.Context) error {
	i := v.departed
	err := await(ctx, time.Minute, time.Second, func(ctx context.Context) error {
		obj, err := v.object(ctx)
		if err == nil && obj.UID == i.uid {
			return fmt.Errorf("the instance is there: %w", errNotYet)
		}
		return client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return v.orphansServe(ctx, v.observers)
}

// orphansServe checks that no object of the former instance is deleted, and that clients still write.
func (v *adversary) orphansServe(ctx context.Context, o *observers) error {
	written := o.witness.Stats().Acknowledged
	serves := func(context.Context) error {
		if n := o.witness.Stats().Acknowledged - written; n < 20 && v.departed.only {
			return fmt.Errorf("orphans acknowledge only %d writes", n)
		}
		return nil
	}
	if err := await(ctx, 30*time.Second, time.Second, serves); err != nil {
		return err
	}
	all := v.departed.owned
	if !v.departed.only { // a StatefulSet may replace its pods
		all = slices.DeleteFunc(slices.Clone(all), func(b bystander) bool { return b.kind.Kind == chaos.Pod.Kind })
	}
	return v.stays(ctx, append(slices.Clone(all), v.departed.kept...))
}

// orphansKeepTheName waits until the new instance says that its name is taken, and checks that it leaves
// the orphans alone. A person then deletes them: heals does that.
func (v *adversary) orphansKeepTheName(ctx context.Context, o *observers) error {
	if !v.departed.only {
		return nil // nothing may run any more
	}
	err := await(ctx, time.Minute, 500*time.Millisecond, func(ctx context.Context) error {
		if now := v.stalled(ctx); now.reason != "NameTaken" {
			return fmt.Errorf("the instance says %q", now)
		}
		return nil
	})
	if err != nil {
		return err
	}
	pause(ctx, v.rest/2)
	if err := v.orphansServe(ctx, o); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	o.witness.Stop()
	lost, err := o.witness.Lost(limited)
	if len(lost) > 0 {
		err = errors.Join(err, fmt.Errorf("%d acknowledged writes are lost", len(lost)))
	}
	return err
}

// isNew checks that the instance is not the former one, nor has its data.
func (v *adversary) isNew(ctx context.Context) error {
	obj, err := v.object(ctx)
	switch {
	case err != nil:
		return err
	case obj.UID == v.departed.uid:
		return errors.New("it was not deleted")
	case obj.Status.ClusterID == v.departed.clusterID:
		return fmt.Errorf("it is the former cluster %s", obj.Status.ClusterID)
	}
	for _, p := range v.members(ctx) {
		if claim := claimOf(p); slices.ContainsFunc(v.departed.kept, func(b bystander) bool { return b.key.Name == claim }) {
			return fmt.Errorf("%s has the volume %s of the former instance", p.Name, claim)
		}
	}
	return nil
}

// savedSecrets are the Secrets of the instance, as a person may have a copy of them.
func (v *adversary) savedSecrets(ctx context.Context) ([]corev1.Secret, error) {
	found, err := v.Find(ctx, v.api, chaos.Secret)
	var all []corev1.Secret
	for _, o := range found {
		one := corev1.Secret{}
		if err := v.get(ctx, o.GetNamespace(), o.GetName(), &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, err
}
