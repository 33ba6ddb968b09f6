package engine

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

const (
	// historySuffix is appended to the name of an object, and its kind in small
	// letters, for the ConfigMap that keeps its history.
	historySuffix = "-history"
	// historyKey is the key in that ConfigMap.
	historyKey = "book.json"
	// historyLabel marks these ConfigMaps.
	historyLabel = "governor.dev/history"
)

// diary keeps the history of each object in a ConfigMap that it owns: one write
// per step, none for anything else. It is read from the API server, not cached.
type diary struct {
	app     string
	client  client.Client
	live    client.Reader
	version string
}

// record appends the entry, unless it says again what the last one said.
func (d *diary) record(ctx context.Context, owner client.Object, e *history.Entry) error {
	if e == nil {
		return nil
	}
	e.Operator = d.version
	cm, err := d.open(ctx, owner)
	if err != nil {
		return err
	}
	book, err := history.Decode(cm.Data[historyKey])
	if err != nil {
		book = history.Book{} // unreadable: begin anew rather than stop working
	}
	if book.Repeats(*e) && e.Result == history.Refused {
		return nil
	}
	raw, err := book.Append(*e).Encode()
	if err != nil {
		return err
	}
	cm.Data = map[string]string{historyKey: raw}
	return d.save(ctx, cm)
}

func (d *diary) open(ctx context.Context, owner client.Object) (*corev1.ConfigMap, error) {
	gvk, err := apiutil.GVKForObject(owner, d.client.Scheme())
	if err != nil {
		return nil, err
	}
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: historyName(owner, gvk.Kind)}
	err = d.live.Get(ctx, key, cm)
	if err == nil || !apierrors.IsNotFound(err) {
		return cm, err
	}
	cm.Name, cm.Namespace = key.Name, key.Namespace
	cm.Labels = map[string]string{
		historyLabel: d.app, lifecycle.LabelInstance: owner.GetName(), lifecycle.LabelManagedBy: apply.Manager,
	}
	cm.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)}
	return cm, nil
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

// entry is what the turn did or refused, or nil.
func (r *report[T, W]) entry() *history.Entry {
	e := &history.Entry{At: r.began, Generation: r.obj.GetGeneration()}
	switch {
	case r.taken != nil:
		e.At, e.Step, e.Duration, e.Result = r.taken.began, r.taken.step, r.taken.took, history.Succeeded
		if r.taken.err != nil {
			e.Result, e.Message = history.Failed, r.taken.err.Error()
		}
	case len(r.refusals) > 0:
		e.Step, e.Result = r.decision.Step, history.Refused
		e.Message = r.refusals[0].Gate + ": " + r.refusals[0].Message
	default:
		return nil
	}
	return e
}

func historyName(owner client.Object, kind string) string {
	return owner.GetName() + "." + strings.ToLower(kind) + historySuffix
}
