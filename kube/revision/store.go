package revision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is the number of revisions per list request.
const pageSize = 500

// Store stores the revisions of all objects of one kind. It lists their metadata once, and
// then tracks its own writes in memory. It is safe for concurrent use for different
// owners.
type Store struct {
	app        string
	gvk        schema.GroupVersionKind
	namespaces []string
	client     client.Client
	live       client.Reader

	loading sync.Mutex // ensures a single list
	loaded  bool

	mu    sync.Mutex
	cache map[types.NamespacedName]newestRevision
}

// newestRevision is the cached state of an object's newest revision.
type newestRevision struct {
	owner   types.UID
	number  int64
	digest  string
	settled bool
	// applied has the value of AnnotationApplied.
	applied []string
	// generation is a generation of the owner that has this spec; 0 if none is known.
	generation int64
	// lastSettled is the number of the newest revision that has settled; 0 if none has.
	lastSettled int64
	// stored are the numbers of all revisions. It is never changed in place.
	stored []int64
}

// NewStore returns a store for the objects of a kind in the namespaces; none means all.
func NewStore(app string, gvk schema.GroupVersionKind, namespaces []string, c client.Client, live client.Reader) *Store {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &Store{app: app, gvk: gvk, namespaces: namespaces, client: c, live: live}
}

// Save stores the owner's spec unless it is the newest revision already, and records that
// it has settled. It returns the number of the revision. It sends no request if nothing
// changed.
func (k *Store) Save(ctx context.Context, owner client.Object, by string, settled bool) (int64, error) {
	if err := k.load(ctx); err != nil {
		return 0, err
	}
	newest := k.newestOf(owner)
	if newest.generation == owner.GetGeneration() && newest.generation > 0 {
		return newest.number, k.settle(ctx, owner, newest, settled)
	}
	spec, digest, err := SpecOf(owner)
	if err != nil {
		return 0, err
	}
	if newest.digest != digest {
		return k.add(ctx, owner, Revision{
			Number: newest.number + 1, Generation: owner.GetGeneration(), By: by, Settled: settled, Digest: digest, Spec: spec,
		})
	}
	newest.generation = owner.GetGeneration()
	k.cacheNewest(client.ObjectKeyFromObject(owner), newest)
	return newest.number, k.settle(ctx, owner, newest, settled)
}

// NoteLost notes that all revisions of the owner were deleted. Its next one gets the number 2,
// so that its revisions are not [Complete], also for the next operator.
func (k *Store) NoteLost(owner client.Object) {
	if k.newestOf(owner).number == 0 {
		k.cacheNewest(client.ObjectKeyFromObject(owner), newestRevision{owner: owner.GetUID(), number: 1})
	}
}

// Settled reports whether the owner has settled with its present spec since it was
// declared.
func (k *Store) Settled(ctx context.Context, owner client.Object) (bool, error) {
	now, err := k.current(ctx, owner)
	return now.settled, err
}

// HasCurrent reports whether the present spec is the newest revision.
func (k *Store) HasCurrent(ctx context.Context, owner client.Object) (bool, error) {
	now, err := k.current(ctx, owner)
	return now.number > 0, err
}

// AppliedObjects names the objects that were applied for the present spec when it settled; none
// if not recorded.
func (k *Store) AppliedObjects(ctx context.Context, owner client.Object) ([]string, error) {
	now, err := k.current(ctx, owner)
	return now.applied, err
}

// RecordApplied records the objects applied for the newest revision, unless they are recorded
// already.
func (k *Store) RecordApplied(ctx context.Context, owner client.Object, applied []string) error {
	now, err := k.current(ctx, owner)
	if err != nil || now.number == 0 || slices.Equal(now.applied, applied) {
		return err
	}
	if err := k.annotate(ctx, owner, now.number, AnnotationApplied, strings.Join(applied, ",")); err != nil {
		return fmt.Errorf("cannot record the objects applied for revision %d: %w", now.number, err)
	}
	now.applied = applied
	k.cacheNewest(client.ObjectKeyFromObject(owner), now)
	return nil
}

// current returns the newest revision if it has the owner's present spec, else the zero
// value.
func (k *Store) current(ctx context.Context, owner client.Object) (newestRevision, error) {
	if err := k.load(ctx); err != nil {
		return newestRevision{}, err
	}
	newest := k.newestOf(owner)
	if newest.number == 0 || newest.generation == owner.GetGeneration() {
		return newest, nil
	}
	if _, digest, err := SpecOf(owner); err != nil || digest != newest.digest {
		return newestRevision{}, err
	}
	return newest, nil
}

// Forget drops the cached state of a deleted object.
func (k *Store) Forget(owner types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.cache, owner)
}

// List reads the revisions of an object, the oldest first.
func (k *Store) List(ctx context.Context, owner client.Object) ([]Revision, error) {
	list := &appsv1.ControllerRevisionList{}
	err := k.live.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingLabels(Selector(k.gvk.Kind, owner.GetName())))
	if err != nil {
		return nil, fmt.Errorf("cannot read the revisions: %w", err)
	}
	var all []Revision
	for i := range list.Items {
		if r, err := Of(&list.Items[i]); err == nil && metav1.IsControlledBy(&list.Items[i], owner) {
			all = append(all, r)
		}
	}
	Sort(all)
	return all, nil
}

func (k *Store) newestOf(owner client.Object) newestRevision {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.cache[client.ObjectKeyFromObject(owner)]; l.owner == owner.GetUID() {
		return l
	}
	return newestRevision{owner: owner.GetUID()} // no revision yet, or only revisions of an earlier object of the same name
}

func (k *Store) cacheNewest(owner types.NamespacedName, l newestRevision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cache == nil {
		k.cache = map[types.NamespacedName]newestRevision{}
	}
	if old, ok := k.cache[owner]; ok && old.owner == l.owner {
		l = old.merged(l)
	} else {
		l = newestRevision{owner: l.owner}.merged(l)
	}
	k.cache[owner] = l
}

// merged returns the state after the revision l was read or written.
func (old newestRevision) merged(l newestRevision) newestRevision {
	settled, stored := old.lastSettled, old.stored
	if l.settled {
		settled = max(settled, l.number)
	}
	if i, known := slices.BinarySearch(stored, l.number); !known {
		stored = slices.Insert(slices.Clone(stored), i, l.number)
	}
	if old.number > l.number {
		l = old
	}
	l.lastSettled, l.stored = settled, stored
	return l
}

// forgetRevision drops a revision that was deleted.
func (k *Store) forgetRevision(owner types.NamespacedName, number int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.cache[owner]
	l.stored = slices.DeleteFunc(slices.Clone(l.stored), func(n int64) bool { return n == number })
	k.cache[owner] = l
}

// load reads the metadata of all revisions once.
func (k *Store) load(ctx context.Context) error {
	k.loading.Lock()
	defer k.loading.Unlock()
	if k.loaded {
		return nil
	}
	for _, namespace := range k.namespaces {
		if err := k.read(ctx, client.InNamespace(namespace), client.MatchingLabels{Label: strings.ToLower(k.gvk.Kind)}); err != nil {
			return err
		}
	}
	k.loaded = true
	return nil
}

// read caches the metadata of the selected revisions.
func (k *Store) read(ctx context.Context, what ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"))
	for {
		if err := k.live.List(ctx, list, append(what, client.Limit(pageSize), client.Continue(list.Continue))...); err != nil {
			return fmt.Errorf("cannot read the revisions: %w", err)
		}
		for i := range list.Items {
			k.cacheRevision(&list.Items[i])
		}
		if list.Continue == "" {
			return nil
		}
	}
}

func (k *Store) cacheRevision(c *metav1.PartialObjectMetadata) {
	owner := metav1.GetControllerOf(c)
	if owner == nil || owner.Kind != k.gvk.Kind {
		return
	}
	r := ofMetadata(c, numberOf(c.Name))
	k.cacheNewest(types.NamespacedName{Namespace: c.Namespace, Name: owner.Name},
		newestRevision{owner: owner.UID, number: r.Number, digest: r.Digest, settled: r.Settled, applied: r.Applied})
}

// add creates a revision, and deletes those that would exceed Limit. It deletes first, so that
// the next call repeats what failed.
func (k *Store) add(ctx context.Context, owner client.Object, r Revision) (int64, error) {
	c, err := controllerRevision(owner, k.gvk, k.app, r)
	if err != nil {
		return 0, err
	}
	if err := k.deleteOldest(ctx, owner, r.Number-Limit); err != nil {
		return 0, notWritten(err, r.Number)
	}
	if err := k.client.Create(ctx, c); err != nil {
		if apierrors.IsAlreadyExists(err) { // a previous leader has written it
			err = k.read(ctx, client.InNamespace(owner.GetNamespace()), client.MatchingLabels(Selector(k.gvk.Kind, owner.GetName())))
		}
		return 0, notWritten(err, r.Number)
	}
	k.cacheNewest(client.ObjectKeyFromObject(owner), newestRevision{
		owner: owner.GetUID(), number: r.Number, digest: r.Digest, settled: r.Settled, generation: r.Generation,
	})
	return r.Number, nil
}

// deleteOldest deletes the revisions up to a number. It keeps the newest one that settled: a
// rollback returns to it, and a freeze holds what it did not need.
func (k *Store) deleteOldest(ctx context.Context, owner client.Object, last int64) error {
	newest := k.newestOf(owner)
	for _, number := range newest.stored {
		if number > last || number == newest.lastSettled {
			continue
		}
		old := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: Name(k.gvk.Kind, owner, number)}}
		if err := k.client.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
			return err
		}
		k.forgetRevision(client.ObjectKeyFromObject(owner), number)
	}
	return nil
}

// notWritten returns the error of a revision that was not written. A nil err means that
// the revision exists already. That is an error too: its spec may be a different one.
func notWritten(err error, number int64) error {
	if err == nil {
		return fmt.Errorf("another operator has written revision %d", number)
	}
	return fmt.Errorf("cannot write revision %d: %w", number, err)
}

// settle records, once, that the owner has settled with the revision.
func (k *Store) settle(ctx context.Context, owner client.Object, l newestRevision, settled bool) error {
	if !settled || l.settled {
		return nil
	}
	if err := k.annotate(ctx, owner, l.number, AnnotationSettled, "true"); err != nil {
		return fmt.Errorf("cannot record that revision %d has settled: %w", l.number, err)
	}
	l.settled = true
	k.cacheNewest(client.ObjectKeyFromObject(owner), l)
	return nil
}

// annotate sets an annotation of a revision. It ignores a revision that no longer exists.
func (k *Store) annotate(ctx context.Context, owner client.Object, number int64, key, value string) error {
	c := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.GetNamespace(), Name: Name(k.gvk.Kind, owner, number),
	}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	return client.IgnoreNotFound(k.client.Patch(ctx, c, client.RawPatch(types.MergePatchType, patch)))
}
