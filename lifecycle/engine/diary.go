package engine

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// historyLabel marks the ConfigMaps that keep histories.
const historyLabel = "governor.dev/history"

// diary keeps the history of each object in a ConfigMap that it owns: one write
// per step, none for anything else. It is read from the API server, not cached.
type diary struct {
	app     string
	client  client.Client
	live    client.Reader
	version string
}

// record appends the entry, unless it says again what the last one said, and notes
// before it what was waited for since the last one.
func (d *diary) record(ctx context.Context, owner client.Object, waited []history.Await, e *history.Entry) error {
	if e == nil && len(waited) == 0 {
		return nil
	}
	cm, book, err := d.open(ctx, owner)
	if err != nil {
		return err
	}
	book = book.Waited(waited)
	if e != nil {
		if e.Result == history.Refused && book.Repeats(*e) {
			return nil
		}
		e.Operator = d.version
		book = book.Append(*e)
	}
	raw, err := book.Encode()
	if err != nil {
		return err
	}
	cm.Data = map[string]string{history.Key: raw}
	return d.save(ctx, cm)
}

// open returns the ConfigMap, not yet created if there is none, and the book in it.
func (d *diary) open(ctx context.Context, owner client.Object) (*corev1.ConfigMap, history.Book, error) {
	gvk, err := apiutil.GVKForObject(owner, d.client.Scheme())
	if err != nil {
		return nil, history.Book{}, err
	}
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: history.Name(gvk.Kind, owner.GetName())}
	switch err = d.live.Get(ctx, key, cm); {
	case apierrors.IsNotFound(err):
		return d.blank(owner, gvk, key), history.Book{}, nil
	case err != nil:
		return nil, history.Book{}, err
	}
	book, err := history.Decode(cm.Data[history.Key])
	if err != nil {
		book = history.Book{} // unreadable: begin anew rather than stop working
	}
	return cm, book, nil
}

func (d *diary) blank(owner client.Object, gvk schema.GroupVersionKind, key client.ObjectKey) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: key.Name, Namespace: key.Namespace,
		Labels: map[string]string{
			historyLabel: d.app, lifecycle.LabelInstance: owner.GetName(), lifecycle.LabelManagedBy: apply.Manager,
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)},
	}}
}

func (d *diary) save(ctx context.Context, cm *corev1.ConfigMap) error {
	var err error
	if cm.ResourceVersion == "" {
		err = d.client.Create(ctx, cm)
	} else {
		err = d.client.Update(ctx, cm)
	}
	if err != nil {
		return fmt.Errorf("cannot write the history %q: %w", cm.Name, err)
	}
	return nil
}

// objections are the gates that refuse, and all that they say.
func objections(refusals []lifecycle.Refusal) (gates, said string) {
	var names, sentences []string
	for _, r := range refusals {
		name := r.Gate
		if r.Policy != "" {
			name = r.Policy + "/" + r.Gate
		}
		names, sentences = append(names, name), append(sentences, name+": "+r.Message)
	}
	return strings.Join(names, ", "), strings.Join(sentences, "; ")
}

// entry is what the turn did or refused, or nil.
func (r *report[T, W]) entry() *history.Entry {
	e := &history.Entry{At: r.began, Generation: r.obj.GetGeneration()}
	switch {
	case r.taken != nil:
		e.At, e.Step, e.Duration, e.Result = r.taken.began, r.taken.step, r.taken.took, history.Succeeded
		e.Approval, e.Bypass = r.approval, r.bypass
		if r.taken.err != nil {
			e.Result, e.Message = history.Failed, r.taken.err.Error()
		}
	case len(r.refusals) > 0:
		e.Step, e.Result = r.decision.Step, history.Refused
		e.HeldBy, e.Message = objections(r.refusals)
	default:
		return nil
	}
	return e
}
