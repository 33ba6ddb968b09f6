package envtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/dynamic"
)

func compositeApp(kind, thing schema.GroupVersionKind, c *counts) engine.App[*dynamic.Object, compositeWorld] {
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(thing)
	return engine.App[*dynamic.Object, compositeWorld]{
		Name: "composite", New: dynamic.New(kind), Planner: composite{thing: thing}, Steps: dynamic.Steps(), Owns: []client.Object{child, &appv1.PodSet{}},
		Driver: func(a kube.Access) lifecycle.Driver[*dynamic.Object, compositeWorld] {
			return dynamicDriver[compositeWorld]{counts: c, observe: func(ctx context.Context, o *dynamic.Object) (compositeWorld, error) {
				return observeChildren(ctx, a.Client, thing, o)
			}}
		},
	}
}

func observeChildren(ctx context.Context, cached client.Reader, thing schema.GroupVersionKind, o *dynamic.Object) (compositeWorld, error) {
	seen := compositeWorld{}
	things := &unstructured.UnstructuredList{}
	things.SetGroupVersionKind(thing.GroupVersion().WithKind(thing.Kind + "List"))
	mine := client.MatchingLabels{lifecycle.LabelInstance: o.GetName()}
	if err := cached.List(ctx, things, client.InNamespace(o.GetNamespace()), mine); err != nil {
		return nil, err
	}
	for i := range things.Items {
		seen[things.Items[i].GetName()] = dynamic.ChildOf(&things.Items[i])
	}
	sets := &appv1.PodSetList{}
	if err := cached.List(ctx, sets, client.InNamespace(o.GetNamespace()), mine); err != nil {
		return nil, err
	}
	for i := range sets.Items {
		seen["PodSet"] = dynamic.ChildOf(&sets.Items[i])
	}
	return seen, nil
}

// A kind without a Go type is registered while the operator runs. Its children are custom
// resources, with and without a Go type: they are applied, waited for, repaired and pruned.
// Unregistered, nothing of it is left in memory, and everything in the cluster; registered
// again, it goes on.
func TestDynamicKindWithChildrenOfAnyKind(t *testing.T) {
	namespace := newNamespace(t)
	op := startOperator(t, namespace)
	kind, thing := installDynamic(t, "Composite"), installDynamic(t, "Thing")
	seen := newCounts()
	must(t, engine.Register(op.engine, compositeApp(kind, thing, seen)))
	newDynamic(t, kind, namespace, "x", map[string]any{"size": int64(2)})

	dynamicReaches(t, kind, namespace, "x", "ChildNotReady")
	becomes(t, thing, namespace, "x-0", metav1.ConditionTrue, "")
	becomes(t, thing, namespace, "x-1", metav1.ConditionFalse, "it paints")
	o := dynamicReaches(t, kind, namespace, "x", "ChildNotReady")
	eventually(t, "what the child says is in the status", func() (err error) {
		if o, err = getDynamic(t, kind, namespace, "x"); err == nil && !strings.Contains(fmt.Sprint(o.Conditions), "it paints") {
			err = fmt.Errorf("the conditions are %v", o.Conditions)
		}
		return err
	})
	becomes(t, thing, namespace, "x-1", metav1.ConditionTrue, "")
	o = dynamicReaches(t, kind, namespace, "x", "AsDeclared")
	if ready, _, _ := unstructured.NestedInt64(o.Object, "status", "ready"); ready != 3 {
		t.Errorf("status.ready is %d, with two things and a pod set", ready)
	}

	editDynamic(t, thing, namespace, "x-0", func(u *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(u.Object, "blue", "spec", "color"))
		must(t, unstructured.SetNestedField(u.Object, "mine", "spec", "other"))
	})
	eventually(t, "an edit is put right, and what others add stays", func() error {
		u, err := getDynamic(t, thing, namespace, "x-0")
		if err != nil {
			return err
		}
		if spec := u.Object["spec"].(map[string]any); spec["color"] != "red" || spec["other"] != "mine" {
			return fmt.Errorf("the spec is %v", spec)
		}
		return nil
	})
	becomes(t, thing, namespace, "x-0", metav1.ConditionTrue, "")
	dynamicReaches(t, kind, namespace, "x", "AsDeclared")
	writesNothing(t, op, seen, func(n int) {
		editDynamic(t, kind, namespace, "x", func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"n": fmt.Sprint(n)})
		})
	})

	editDynamic(t, kind, namespace, "x", func(u *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(u.Object, int64(1), "spec", "size"))
	})
	second := dynamic.New(thing)()
	second.SetNamespace(namespace)
	second.SetName("x-1")
	gone(t, "the second thing", second)
	dynamicReaches(t, kind, namespace, "x", "AsDeclared")
	registersAgain(t, op, namespace, kind, thing, seen)
}

// registersAgain unregisters the kind, and registers it again.
func registersAgain(t *testing.T, op *operator, namespace string, kind, thing schema.GroupVersionKind, seen *counts) {
	t.Helper()
	must(t, op.engine.Unregister(t.Context(), kind.GroupKind()))
	if left := seriesOf(t, "composite"); len(left) != 0 || seen.drivers() != 1 {
		t.Errorf("the metrics %v are left, and %d drivers are closed", left, seen.drivers())
	}
	observed := seen.of("Composite", "x")
	editDynamic(t, kind, namespace, "x", func(u *unstructured.Unstructured) {
		must(t, unstructured.SetNestedField(u.Object, int64(3), "spec", "size"))
	})
	if _, err := getDynamic(t, thing, namespace, "x-0"); err != nil {
		t.Errorf("a child went with its operator: %v", err)
	}
	must(t, engine.Register(op.engine, compositeApp(kind, thing, seen)))
	for _, name := range []string{"x-1", "x-2"} {
		becomes(t, thing, namespace, name, metav1.ConditionTrue, "")
	}
	dynamicReaches(t, kind, namespace, "x", "AsDeclared")
	if now := seen.of("Composite", "x"); now <= observed {
		t.Errorf("it was observed %d times, and %d times before", now, observed)
	}
	if err := engine.Register(op.engine, compositeApp(kind, thing, seen)); err == nil || !strings.Contains(err.Error(), "is registered as composite already") {
		t.Errorf("a second registration: %v", err)
	}
	must(t, op.engine.Unregister(t.Context(), kind.GroupKind()))
}

// writesNothing wakes Composite x twice, and expects no write about its group.
func writesNothing(t *testing.T, op *operator, seen *counts, wake func(n int)) {
	t.Helper()
	before := op.writes.Load()
	for n := range 2 { // the second reconcile begins when the first has been published
		observed := seen.of("Composite", "x")
		wake(n)
		eventually(t, "it is observed", func() error {
			if seen.of("Composite", "x") == observed {
				return fmt.Errorf("%d observations, as before", observed)
			}
			return nil
		})
	}
	if all := op.since(before); slices.ContainsFunc(all, func(line string) bool { return strings.Contains(line, dynamicGroup) }) {
		t.Errorf("at rest it writes %v", all)
	}
}

// seriesOf are the metrics of the application.
func seriesOf(t *testing.T, app string) (all []string) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "app" && label.GetValue() == app {
					all = append(all, family.GetName())
				}
			}
		}
	}
	return all
}
