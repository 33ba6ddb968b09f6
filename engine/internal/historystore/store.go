// Package historystore keeps the history of each object in a ConfigMap.
package historystore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// historyLabel marks the ConfigMaps that keep histories.
const historyLabel = "governor.dev/history"

// Store keeps the history of each object in a ConfigMap that it owns: one write
// per step, none for anything else. It is read from the API server, not cached.
type Store struct {
	app     string
	client  client.Client
	live    client.Reader
	version string
}

// New keeps the histories of the application's objects. version is that of the operator.
func New(app, version string, c client.Client, live client.Reader) *Store {
	return &Store{app: app, client: c, live: live, version: version}
}

// Record appends the entry, unless it says again what the last one said, and notes
// before it what was waited for since the last one.
func (d *Store) Record(ctx context.Context, owner client.Object, waited []history.WaitRecord, e *history.Entry) error {
	if e == nil && len(waited) == 0 {
		return nil
	}
	cm, book, err := d.Open(ctx, owner)
	if err != nil {
		return err
	}
	book, news := d.continued(book, waited, e)
	if !news {
		return nil
	}
	raw, err := book.Encode()
	if err != nil {
		return err
	}
	cm.Data = map[string]string{history.Key: raw}
	return d.save(ctx, cm)
}

// continued is the book with the entry, if there is one, and whether it is to be written.
// What was waited for between two attempts in vain took no usual time.
func (d *Store) continued(book history.Log, waited []history.WaitRecord, e *history.Entry) (_ history.Log, news bool) {
	if e == nil {
		return book.Waited(waited), true
	}
	if after, noted, again := book.RecordRetry(*e); again {
		return after, noted
	}
	book = book.Waited(waited)
	if e.Result == history.ResultRefused && book.Repeats(*e) {
		return book, false
	}
	e.Operator = d.version
	return book.Append(*e), true
}

// Open returns the ConfigMap, not yet created if there is none, and the book in it.
func (d *Store) Open(ctx context.Context, owner client.Object) (*corev1.ConfigMap, history.Log, error) {
	gvk, err := apiutil.GVKForObject(owner, d.client.Scheme())
	if err != nil {
		return nil, history.Log{}, err
	}
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: history.Name(gvk.Kind, owner.GetName())}
	switch err = d.live.Get(ctx, key, cm); {
	case apierrors.IsNotFound(err):
		return d.blank(owner, gvk, key), history.Log{}, nil
	case err != nil:
		return nil, history.Log{}, err
	}
	if metav1.GetControllerOf(cm) == nil && cm.Labels[historyLabel] == d.app {
		cm.OwnerReferences = append(cm.OwnerReferences, *metav1.NewControllerRef(owner, gvk)) // others removed it
	}
	book, err := history.Decode(cm.Data[history.Key])
	if err != nil {
		book = history.Log{} // unreadable: start a new one rather than stop working
	}
	return cm, book, nil
}

func (d *Store) blank(owner client.Object, gvk schema.GroupVersionKind, key client.ObjectKey) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: key.Name, Namespace: key.Namespace,
		Labels: map[string]string{
			historyLabel: d.app, lifecycle.LabelInstance: owner.GetName(), lifecycle.LabelManagedBy: apply.Manager,
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)},
	}}
}

// save writes the book, except where nothing is created any more: what goes with its
// namespace leaves none.
func (d *Store) save(ctx context.Context, cm *corev1.ConfigMap) error {
	var err error
	switch {
	case cm.ResourceVersion == "":
		err = d.client.Create(ctx, cm)
	case cm.Immutable != nil && *cm.Immutable:
		err = d.replace(ctx, cm)
	default:
		err = d.client.Update(ctx, cm)
	}
	if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("cannot write the history %q: %w", cm.Name, err)
	}
	return nil
}

// replace creates the book again where a user has made it immutable: otherwise nothing would be recorded any more. While a
// finalizer keeps the old one, nothing is: that is no reason to stop reconciling.
func (d *Store) replace(ctx context.Context, cm *corev1.ConfigMap) error {
	if cm.Labels[historyLabel] != d.app {
		return errors.New("it is immutable, and not the operator's")
	}
	uid := cm.UID
	err := d.client.Delete(ctx, cm.DeepCopy(), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	cm.ObjectMeta = metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name, Labels: cm.Labels, Annotations: cm.Annotations, OwnerReferences: cm.OwnerReferences}
	cm.Immutable = nil
	err = d.client.Create(ctx, cm)
	if apierrors.IsAlreadyExists(err) {
		logf.FromContext(ctx).Info("a step is not recorded: the history is immutable, and a finalizer keeps it from being replaced", "configMap", cm.Name)
		return nil
	}
	return err
}

// LastCause is the cause of the last step that was taken, by the history; empty if it cannot be read.
func (d *Store) LastCause(ctx context.Context, owner client.Object) lifecycle.Cause {
	_, book, err := d.Open(ctx, owner)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("what began before this operator is not known", "cause", err.Error())
		return ""
	}
	for _, entry := range slices.Backward(book.Entries) {
		if entry.Result != history.ResultRefused {
			return entry.Step.Cause
		}
	}
	return ""
}
