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

// page is how many revisions are read at once.
const page = 500

// Store writes down the revisions of all objects of one kind. It reads them once, in
// one list of their metadata, and knows from then on what it wrote. It is safe for
// concurrent use for different owners.
type Store struct {
	app        string
	gvk        schema.GroupVersionKind
	namespaces []string
	client     client.Client
	live       client.Reader

	loading sync.Mutex // one list is enough
	loaded  bool

	mu    sync.Mutex
	known map[types.NamespacedName]last
}

// last is the newest revision of an object, by what is remembered of it.
type last struct {
	owner   types.UID
	number  int64
	digest  string
	settled bool
	// provided names what was provided for it, as AnnotationProvided does.
	provided []string
	// generation is one of the owner's that is known to have this spec; 0 if none is.
	generation int64
}

// NewStore returns a keeper for the objects of a kind in the namespaces; none means all.
func NewStore(app string, gvk schema.GroupVersionKind, namespaces []string, c client.Client, live client.Reader) *Store {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &Store{app: app, gvk: gvk, namespaces: namespaces, client: c, live: live}
}

// Save writes the spec of the owner down, unless it is the newest revision already, and
// that it has settled. It returns the number of the revision. At rest it costs nothing.
func (k *Store) Save(ctx context.Context, owner client.Object, by string, settled bool) (int64, error) {
	if err := k.load(ctx); err != nil {
		return 0, err
	}
	newest := k.of(owner)
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
	k.learn(client.ObjectKeyFromObject(owner), newest)
	return newest.number, k.settle(ctx, owner, newest, settled)
}

// Settled reports whether everything has been as the present spec declares, since it was
// declared.
func (k *Store) Settled(ctx context.Context, owner client.Object) (bool, error) {
	now, err := k.present(ctx, owner)
	return now.settled, err
}

// Kept reports whether the present spec is the newest revision.
func (k *Store) Kept(ctx context.Context, owner client.Object) (bool, error) {
	now, err := k.present(ctx, owner)
	return now.number > 0, err
}

// Provided names what was provided for the present spec when everything was as it declares;
// nothing if that was not noted.
func (k *Store) Provided(ctx context.Context, owner client.Object) ([]string, error) {
	now, err := k.present(ctx, owner)
	return now.provided, err
}

// Note writes down what was provided for the newest revision, unless that is noted already.
func (k *Store) Note(ctx context.Context, owner client.Object, provided []string) error {
	now, err := k.present(ctx, owner)
	if err != nil || now.number == 0 || slices.Equal(now.provided, provided) {
		return err
	}
	if err := k.annotate(ctx, owner, now.number, AnnotationProvided, strings.Join(provided, ",")); err != nil {
		return fmt.Errorf("cannot note what was provided for revision %d: %w", now.number, err)
	}
	now.provided = provided
	k.learn(client.ObjectKeyFromObject(owner), now)
	return nil
}

// present is the newest revision if it is of the owner's present spec, else the zero value.
func (k *Store) present(ctx context.Context, owner client.Object) (last, error) {
	if err := k.load(ctx); err != nil {
		return last{}, err
	}
	newest := k.of(owner)
	if newest.number == 0 || newest.generation == owner.GetGeneration() {
		return newest, nil
	}
	if _, digest, err := SpecOf(owner); err != nil || digest != newest.digest {
		return last{}, err
	}
	return newest, nil
}

// Forget drops what is remembered about an object that is gone.
func (k *Store) Forget(owner types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, owner)
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

func (k *Store) of(owner client.Object) last {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.known[client.ObjectKeyFromObject(owner)]; l.owner == owner.GetUID() {
		return l
	}
	return last{owner: owner.GetUID()} // nothing, or what an earlier object of the name left
}

func (k *Store) learn(owner types.NamespacedName, l last) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[types.NamespacedName]last{}
	}
	if old, ok := k.known[owner]; !ok || old.owner != l.owner || old.number <= l.number {
		k.known[owner] = l
	}
}

// load reads all revisions once.
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

// read learns from the metadata of what is selected.
func (k *Store) read(ctx context.Context, what ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"))
	for {
		if err := k.live.List(ctx, list, append(what, client.Limit(page), client.Continue(list.Continue))...); err != nil {
			return fmt.Errorf("cannot read the revisions: %w", err)
		}
		for i := range list.Items {
			k.meet(&list.Items[i])
		}
		if list.Continue == "" {
			return nil
		}
	}
}

func (k *Store) meet(c *metav1.PartialObjectMetadata) {
	owner := metav1.GetControllerOf(c)
	if owner == nil || owner.Kind != k.gvk.Kind {
		return
	}
	r := ofMetadata(c, numberOf(c.Name))
	k.learn(types.NamespacedName{Namespace: c.Namespace, Name: owner.Name},
		last{owner: owner.UID, number: r.Number, digest: r.Digest, settled: r.Settled, provided: r.Provided})
}

// add writes a revision, and lets the one go that is one too many by it.
func (k *Store) add(ctx context.Context, owner client.Object, r Revision) (int64, error) {
	c, err := keep(owner, k.gvk, k.app, r)
	if err != nil {
		return 0, err
	}
	if err := k.client.Create(ctx, c); err != nil {
		if apierrors.IsAlreadyExists(err) { // who led before us was faster
			err = k.read(ctx, client.InNamespace(owner.GetNamespace()), client.MatchingLabels(Selector(k.gvk.Kind, owner.GetName())))
		}
		return 0, notWritten(err, r.Number)
	}
	k.learn(client.ObjectKeyFromObject(owner), last{
		owner: owner.GetUID(), number: r.Number, digest: r.Digest, settled: r.Settled, generation: r.Generation,
	})
	if r.Number <= Limit {
		return r.Number, nil
	}
	old := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.GetNamespace(), Name: Name(k.gvk.Kind, owner, r.Number-Limit),
	}}
	return r.Number, client.IgnoreNotFound(k.client.Delete(ctx, old))
}

// notWritten explains the failure; a revision that was there already is one too, for
// what was to be written may be something else.
func notWritten(err error, number int64) error {
	if err == nil {
		return fmt.Errorf("revision %d was written by somebody else meanwhile", number)
	}
	return fmt.Errorf("cannot write revision %d: %w", number, err)
}

// settle notes that everything was as the revision declares, the first time.
func (k *Store) settle(ctx context.Context, owner client.Object, l last, settled bool) error {
	if !settled || l.settled {
		return nil
	}
	if err := k.annotate(ctx, owner, l.number, AnnotationSettled, "true"); err != nil {
		return fmt.Errorf("cannot note that revision %d has settled: %w", l.number, err)
	}
	l.settled = true
	k.learn(client.ObjectKeyFromObject(owner), l)
	return nil
}

// annotate writes an annotation of a revision; of one that is gone there is nothing to say.
func (k *Store) annotate(ctx context.Context, owner client.Object, number int64, key, value string) error {
	c := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.GetNamespace(), Name: Name(k.gvk.Kind, owner, number),
	}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	return client.IgnoreNotFound(k.client.Patch(ctx, c, client.RawPatch(types.MergePatchType, patch)))
}
