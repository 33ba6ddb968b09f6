package apply

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	group           string // of the kind
	content         *unstructured.Unstructured
	fingerprint     fingerprint
	version         string // the only version to write over; empty means any
	sample          client.Object
}

func (d declared) name() string { return d.content.GetName() }

func (d declared) identity() identity { return identity{d.group, d.kind, d.name()} }

// newObject returns an empty object of the same Go type, which is the type in the cache. An
// unstructured one says its kind.
func (d declared) newObject() client.Object {
	obj := reflect.New(reflect.TypeOf(d.sample).Elem()).Interface().(client.Object)
	if _, ok := obj.(runtime.Unstructured); ok {
		obj.GetObjectKind().SetGroupVersionKind(d.sample.GetObjectKind().GroupVersionKind())
	}
	return obj
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
	return declared{kind: gvk.Kind, group: gvk.Group, ownerKind: ownerKind.Kind, content: u, sample: obj, version: version}, nil
}

// over returns the declaration for an object that exists. Users may choose the type of a Service,
// except ExternalName: with it clients reach a foreign name instead of the pods, although no
// field that Governor declares has changed.
func (d declared) over(existing client.Object) declared {
	spec, ok := d.content.Object["spec"].(map[string]any)
	if ok && isExternalName(existing) && spec["type"] == nil {
		spec["type"] = string(corev1.ServiceTypeClusterIP)
	}
	return d
}

func isExternalName(obj client.Object) bool {
	service, ok := obj.(*corev1.Service)
	return ok && service.Spec.Type == corev1.ServiceTypeExternalName
}

// fingerprint identifies the content of a wanted object. It is computed before anything is
// declared, because an unchanged object needs no other work in a reconcile. It does not
// include the resourceVersion to write over.
type fingerprint [sha256.Size]byte

func (a *Applier) fingerprint(wanted lifecycle.Object) (id identity, sum fingerprint, err error) {
	gvk, err := apiutil.GVKForObject(wanted, a.client.Scheme())
	if err != nil {
		return id, sum, err
	}
	if wanted.GetResourceVersion() != "" {
		wanted = wanted.DeepCopyObject().(lifecycle.Object)
		wanted.SetResourceVersion("")
	}
	hash := sha256.New() // the encoder writes from a buffer that it reuses; Marshal would copy it
	if err := json.NewEncoder(hash).Encode(wanted); err != nil {
		return id, sum, fmt.Errorf("cannot encode %s %q: %w", gvk.Kind, wanted.GetName(), err)
	}
	return identity{gvk.Group, gvk.Kind, wanted.GetName()}, fingerprint(hash.Sum(nil)), nil
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
	if _, ok := obj.(runtime.Unstructured); ok {
		dropNulls(content)
		return content, nil
	}
	dropUnset(reflect.ValueOf(obj), content)
	return content, nil
}

// dropNulls does the same for an object without a Go type, whose author wrote what it has.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, field any) bool { return field == nil })
		for _, field := range v {
			dropNulls(field)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
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
