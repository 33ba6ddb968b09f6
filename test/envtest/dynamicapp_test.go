package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/dynamic"
)

const dynamicGroup = "dynamic.test.governor.dev"

func dynamicKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: dynamicGroup, Version: "v1", Kind: kind}
}

// installDynamic defines a kind without a Go type, and removes it at the end of the test.
func installDynamic(t *testing.T, kind string) schema.GroupVersionKind {
	t.Helper()
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	plural := strings.ToLower(kind) + "s"
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + dynamicGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: dynamicGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": open, "status": open},
				}},
			}},
		},
	}
	must(t, client.IgnoreAlreadyExists(api.Create(t.Context(), crd)))
	t.Cleanup(func() {
		if err := api.Delete(context.Background(), crd); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return dynamicKind(kind)
}

func newDynamic(t *testing.T, kind schema.GroupVersionKind, namespace, name string, spec map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	eventually(t, kind.Kind+" is served", func() error { return api.Create(t.Context(), u) })
}

func getDynamic(t *testing.T, kind schema.GroupVersionKind, namespace, name string) (*dynamic.Object, error) {
	t.Helper()
	o := dynamic.New(kind)()
	return o, api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
}

func dynamicReaches(t *testing.T, kind schema.GroupVersionKind, namespace, name, reason string) (o *dynamic.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s %s is %s", kind.Kind, name, reason), func() (err error) {
		if o, err = getDynamic(t, kind, namespace, name); err != nil {
			return err
		}
		for _, c := range o.Conditions {
			if c.Type == lifecycle.ConditionReady && c.Reason == reason && o.ObservedGeneration == o.GetGeneration() {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %v of generation %d", o.Conditions, o.ObservedGeneration)
	})
	return o
}

// editDynamic changes the object as a user does.
func editDynamic(t *testing.T, kind schema.GroupVersionKind, namespace, name string, edit func(*unstructured.Unstructured)) {
	t.Helper()
	eventually(t, "an edit", func() error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
			return err
		}
		edit(u)
		return api.Update(t.Context(), u, client.FieldOwner("by-hand"))
	})
}

// composite declares what its spec lists, as a webhook would answer: children of any kind.
type composite struct {
	lifecycle.NoConditions[*dynamic.Object, compositeWorld]
	thing schema.GroupVersionKind
}

// compositeWorld has the children by name.
type compositeWorld map[string]dynamic.Child

func (c composite) things(want *dynamic.Object) (names []string) {
	size, _, _ := unstructured.NestedInt64(want.Object, "spec", "size")
	for i := range size {
		names = append(names, fmt.Sprintf("%s-%d", want.GetName(), i))
	}
	return names
}

func (c composite) Resources(want *dynamic.Object, _ compositeWorld) ([]lifecycle.Object, error) {
	set := childSet("a:1") // a custom resource with a Go type
	set.Name, set.Spec.Replicas = want.GetName(), 0
	all := []lifecycle.Object{set}
	for _, name := range c.things(want) {
		u := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"creationTimestamp": nil}, "spec": map[string]any{"color": "red"},
		}}
		u.SetGroupVersionKind(c.thing)
		u.SetName(name)
		all = append(all, u)
	}
	return all, nil
}

func (c composite) Next(want *dynamic.Object, seen compositeWorld, _ time.Time) lifecycle.Decision {
	rules := []lifecycle.Decision{seen["PodSet"].Wait("PodSet", want.GetName())}
	for _, name := range c.things(want) {
		rules = append(rules, seen[name].Wait(c.thing.Kind, name))
	}
	return lifecycle.First(rules...)
}

func (composite) Effect(_ *dynamic.Object, seen compositeWorld, _ lifecycle.Step) (during, after compositeWorld) {
	return seen, seen
}

func (composite) Status(want *dynamic.Object, seen compositeWorld) {
	ready := int64(0)
	for _, child := range seen {
		if child.Ready {
			ready++
		}
	}
	want.SetStatus(map[string]any{"ready": ready})
}

// dynamicDriver counts observations, and can be given what a step does.
type dynamicDriver[W any] struct {
	observe func(ctx context.Context, o *dynamic.Object) (W, error)
	act     func(ctx context.Context, o *dynamic.Object, s lifecycle.Step) error
	counts  *counts
}

type counts struct {
	mu       sync.Mutex
	observed map[string]int
	closed   int // drivers
}

func (c *counts) drivers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func newCounts() *counts { return &counts{observed: map[string]int{}} }

func (c *counts) of(kind, name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.observed[kind+" "+name]
}

// Close implements io.Closer.
func (d dynamicDriver[W]) Close() error {
	d.counts.mu.Lock()
	defer d.counts.mu.Unlock()
	d.counts.closed++
	return nil
}

func (d dynamicDriver[W]) Observe(ctx context.Context, o *dynamic.Object) (W, error) {
	d.counts.mu.Lock()
	d.counts.observed[o.GetKind()+" "+o.GetName()]++
	d.counts.mu.Unlock()
	return d.observe(ctx, o)
}

func (d dynamicDriver[W]) Act(ctx context.Context, o *dynamic.Object, _ W, s lifecycle.Step) error {
	if d.act == nil {
		return errors.New("there is no step " + s.String())
	}
	return d.act(ctx, o, s)
}

// becomes makes the object's controller, which the test plays, write the status.
func becomes(t *testing.T, kind schema.GroupVersionKind, namespace, name string, status metav1.ConditionStatus, message string) {
	t.Helper()
	eventually(t, "a status", func() error {
		o, err := getDynamic(t, kind, namespace, name)
		if err != nil {
			return err
		}
		o.ObservedGeneration = o.GetGeneration()
		o.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: "Played", Message: message, LastTransitionTime: metav1.Now()}}
		return api.Status().Update(t.Context(), o)
	})
}

func gone(t *testing.T, what string, obj client.Object) {
	t.Helper()
	eventually(t, what+" is gone", func() error {
		err := api.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

func configMapNamed(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
