package chaos

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// ErrNothing says that no object of the kind belongs to the instance at present.
var ErrNothing = errors.New("there is no such object")

// ErrNoAPI says that the manipulation needs a machine or the application, and not the API.
var ErrNoAPI = errors.New("it is not done through the Kubernetes API")

// Done is what a manipulation did.
type Done struct {
	// Objects are the names of what it touched.
	Objects []string
	// Undo ends what lasts; nil if nothing lasts. What is gone already is no error.
	Undo func(context.Context) error
}

// Do does the manipulation to the instance: to the target-th of its objects, modulo their
// number, or to all of them. It stops at the first object that the API server refuses.
func (i Instance) Do(ctx context.Context, c client.Client, m chaos.Manipulation, target int) (Done, error) {
	act, ok := verbs[m.Verb]
	if !ok {
		return Done{}, fmt.Errorf("%s: %w", m.Name, ErrNoAPI)
	}
	found, err := i.Find(ctx, c, m.Object)
	if err != nil {
		return Done{}, err
	}
	if len(found) == 0 {
		return Done{}, fmt.Errorf("%s: %w", m.Name, ErrNothing)
	}
	w := work{Instance: i, client: c, what: m, all: found}
	if m.All {
		return w.each(ctx, act, found)
	}
	w.nth = target % len(found)
	return w.each(ctx, act, found[w.nth:w.nth+1])
}

// work is one manipulation in progress.
type work struct {
	Instance
	client client.Client
	what   chaos.Manipulation
	all    []unstructured.Unstructured
	nth    int
}

type action func(ctx context.Context, w work, o *unstructured.Unstructured) (undo func(context.Context) error, err error)

func (w work) each(ctx context.Context, act action, objects []unstructured.Unstructured) (Done, error) {
	var done Done
	var undos []func(context.Context) error
	for n := range objects {
		undo, err := act(ctx, w, &objects[n])
		if undo != nil {
			undos = append(undos, undo)
			done.Undo = together(undos)
		}
		if err != nil {
			return done, fmt.Errorf("%s of %s: %w", w.what.Name, objects[n].GetName(), err)
		}
		done.Objects = append(done.Objects, objects[n].GetName())
	}
	return done, nil
}

func together(undos []func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		var all error
		for _, undo := range undos {
			all = errors.Join(all, client.IgnoreNotFound(undo(ctx)))
		}
		return all
	}
}

var verbs = map[chaos.Verb]action{
	chaos.VerbDelete: remove, chaos.VerbForceDelete: forceRemove, chaos.VerbEvict: evict,
	chaos.VerbStripLabels: strip("labels"), chaos.VerbStripOwners: strip("ownerReferences"), chaos.VerbAddFinalizer: addFinalizer,
	chaos.VerbPatch: patch, chaos.VerbPatchStatus: patchStatus, chaos.VerbReplace: replace, chaos.VerbSwap: swap, chaos.VerbIsolate: isolate,
	chaos.VerbApply: applyForced, chaos.VerbClientApply: clientApply, chaos.VerbRecreate: recreate,
}

type undoing = func(context.Context) error

func remove(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	return nil, w.client.Delete(ctx, o, client.PropagationPolicy(w.what.Detail))
}

func forceRemove(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	return nil, w.client.Delete(ctx, o, client.GracePeriodSeconds(0))
}

func evict(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
	return nil, w.client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{ObjectMeta: pod.ObjectMeta})
}

func strip(field string) action {
	return func(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
		return nil, w.client.Patch(ctx, o, client.RawPatch(mergePatch, []byte(`{"metadata":{"`+field+`":null}}`)), w.manager()...)
	}
}

func patch(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	var undo undoing
	if before := o.DeepCopy(); w.what.Lasts {
		undo = func(ctx context.Context) error { return w.takeBack(ctx, before) }
	}
	return undo, w.client.Patch(ctx, o, client.RawPatch(w.what.PatchType(), w.patch()), w.manager()...)
}

// patch is the patch with the present time, and with an authority that signed nothing.
func (w work) patch() []byte {
	text := w.what.Patch
	if w.Clock != nil {
		text = strings.ReplaceAll(text, "$NOW", w.Clock().UTC().Format(time.RFC3339))
	}
	if strings.Contains(text, "$CA") {
		pem, _, err := cert.GenerateSelfSignedCertKey("chaos", nil, nil)
		if err == nil { // otherwise the API server refuses the patch
			text = strings.ReplaceAll(text, "$CA", base64.StdEncoding.EncodeToString(pem))
		}
	}
	return []byte(text)
}

func patchStatus(ctx context.Context, w work, o *unstructured.Unstructured) (undoing, error) {
	return nil, w.client.Status().Patch(ctx, o, client.RawPatch(w.what.PatchType(), w.patch()))
}

func (w work) manager() []client.PatchOption {
	if w.Manager == "" {
		return nil
	}
	return []client.PatchOption{client.FieldOwner(w.Manager)}
}
