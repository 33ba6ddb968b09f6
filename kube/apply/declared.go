package apply

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/governor-dev/governor/lifecycle"
)

// declared is an object reduced to the fields that its author set, with owner and labels.
type declared struct {
	kind, ownerKind string
	content         *unstructured.Unstructured
	fingerprint     fingerprint
	version         string // the only version to write over; empty means any
	sample          client.Object
}

func (d declared) name() string { return d.content.GetName() }

// newObject returns an empty object of the same Go type, which is the type in the cache.
func (d declared) newObject() client.Object {
	return reflect.New(reflect.TypeOf(d.sample).Elem()).Interface().(client.Object)
}

func (a *Applier) declare(owner client.Object, wanted lifecycle.Object) (declared, error) {
	obj, ok := wanted.DeepCopyObject().(client.Object)
	if !ok {
		return declared{}, fmt.Errorf("%T is not an object", wanted)
	}
	a.setLabels(owner, obj)
	return declare(a.client.Scheme(), owner, obj)
}

// declare makes the owner the controller of the object and reduces it to its declared
// fields.
func declare(scheme *runtime.Scheme, owner, obj client.Object) (declared, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return declared{}, err
	}
	ownerKind, err := apiutil.GVKForObject(owner, scheme)
	if err != nil {
		return declared{}, err
	}
	version := obj.GetResourceVersion()
	obj.SetResourceVersion("")
	obj.SetNamespace(owner.GetNamespace())
	obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, ownerKind)})
	content, err := declaredFields(obj)
	if err != nil {
		return declared{}, fmt.Errorf("cannot encode %s %q: %w", gvk.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return declared{kind: gvk.Kind, ownerKind: ownerKind.Kind, content: u, sample: obj, version: version}, nil
}

// fingerprint identifies the content of a wanted object. It is computed before anything is
// declared, because an unchanged object needs no other work in a reconcile. It does not
// include the resourceVersion to write over.
type fingerprint [sha256.Size]byte

func (a *Applier) fingerprint(wanted lifecycle.Object) (kind string, sum fingerprint, err error) {
	gvk, err := apiutil.GVKForObject(wanted, a.client.Scheme())
	if err != nil {
		return "", sum, err
	}
	if wanted.GetResourceVersion() != "" {
		wanted = wanted.DeepCopyObject().(lifecycle.Object)
		wanted.SetResourceVersion("")
	}
	hash := sha256.New() // the encoder writes from a buffer that it reuses; Marshal would copy it
	if err := json.NewEncoder(hash).Encode(wanted); err != nil {
		return "", sum, fmt.Errorf("cannot encode %s %q: %w", gvk.Kind, wanted.GetName(), err)
	}
	return gvk.Kind, fingerprint(hash.Sum(nil)), nil
}

func (a *Applier) setLabels(owner, obj client.Object) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[lifecycle.LabelApp] = a.app
	labels[lifecycle.LabelInstance] = owner.GetName()
	labels[lifecycle.LabelManagedBy] = Manager
	labels[lifecycle.LabelApplied] = "true"
	obj.SetLabels(labels)
}

// declaredFields returns the object's content without what its author did not set: the
// status, and the empty structs that encoding/json writes although they are marked
// omitempty. Server-side apply would treat those as a claim of ownership.
func declaredFields(obj client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	dropUnset(reflect.ValueOf(obj), content)
	return content, nil
}

func dropUnset(v reflect.Value, encoded any) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch e := encoded.(type) {
	case map[string]any:
		if v.Kind() == reflect.Struct {
			dropUnsetFields(v, e)
		}
	case []any:
		for i := range e {
			dropUnset(v.Index(i), e[i])
		}
	}
}

func dropUnsetFields(v reflect.Value, encoded map[string]any) {
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" && strings.Contains(options, "inline") {
			dropUnset(v.Field(i), encoded)
			continue
		}
		value, ok := encoded[name]
		if !ok {
			continue
		}
		dropUnset(v.Field(i), value)
		unset := v.Field(i).Kind() == reflect.Struct && strings.Contains(options, "omitempty") && isEmpty(value)
		if value == nil || unset {
			delete(encoded, name)
		}
	}
}

func isEmpty(value any) bool {
	m, ok := value.(map[string]any)
	return ok && len(m) == 0
}
