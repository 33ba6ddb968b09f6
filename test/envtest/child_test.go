package envtest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/lifecycle"
)

// children applies PodSets, which are custom resources, as children of a ConfigMap.
type children struct {
	owner   *corev1.ConfigMap
	cached  client.Client
	applier *apply.Applier
}

func newChildren(t *testing.T) *children {
	t.Helper()
	namespace := newNamespace(t)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "parent"}}
	must(t, api.Create(t.Context(), owner))
	seen, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	must(t, err)
	must(t, seen.IndexField(t.Context(), &appv1.PodSet{}, apply.OwnerIndex, apply.IndexOwner))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); _ = seen.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	cached, err := client.New(config, client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: seen}})
	must(t, err)
	c := &children{owner: owner, cached: cached}
	c.restart(t)
	return c
}

// restart drops all cached state, as a new operator process does.
func (c *children) restart(t *testing.T) {
	t.Helper()
	schemas, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	c.applier = apply.New("parent", c.cached, api, readyourwrites.New(c.cached, api, time.Now), []client.Object{&appv1.PodSet{}},
		schemas.OpenAPIV3WithContext(t.Context()), time.Now)
}

// apply applies the objects, waits until the cache shows them, and returns the changes as
// text.
func (c *children) apply(t *testing.T, wanted ...lifecycle.Object) []string {
	t.Helper()
	eventually(t, "the cache shows the children", c.shown(t))
	changes, err := c.applier.Apply(t.Context(), c.owner, wanted)
	must(t, err)
	words := []string{}
	for _, change := range changes {
		words = append(words, change.String())
	}
	return words
}

// shown compares the cache with the API server.
func (c *children) shown(t *testing.T) func() error {
	return func() error {
		return client.IgnoreNotFound(func() error {
			is, err := get(t, &appv1.PodSet{}, c.owner.Namespace, "child")
			if err != nil {
				return err
			}
			return c.sees(t, is)
		}())
	}
}

var errCache = errors.New("the cache lags behind")

func (c *children) sees(t *testing.T, is *appv1.PodSet) error {
	cached := &appv1.PodSet{}
	if err := c.cached.Get(t.Context(), client.ObjectKeyFromObject(is), cached); err != nil {
		return errCache
	}
	if cached.ResourceVersion != is.ResourceVersion {
		return errCache
	}
	return nil
}

// childSet has a list in which each item has its own field manager.
func childSet(image string) *appv1.PodSet {
	return &appv1.PodSet{
		ObjectMeta: metav1.ObjectMeta{Name: "child"},
		Spec: appv1.PodSetSpec{Replicas: 2, Template: appv1.PodTemplate{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
		}},
	}
}

func (c *children) edit(t *testing.T, edit func(*appv1.PodSet)) {
	t.Helper()
	is, err := get(t, &appv1.PodSet{}, c.owner.Namespace, "child")
	must(t, err)
	edit(is)
	must(t, api.Update(t.Context(), is, client.FieldOwner("by-hand")))
}

// TestCustomResourceAsChild restarts the operator between the changes of a child that is a
// custom resource: its schema is not compiled in.
func TestCustomResourceAsChild(t *testing.T) {
	c := newChildren(t)
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if want == nil {
			want = []string{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got) %s", what, diff)
		}
	}
	expect("it is created", c.apply(t, childSet("a:1")), "Created PodSet child")
	expect("nothing differs", c.apply(t, childSet("a:1")))

	c.restart(t)
	expect("nothing differs after a restart", c.apply(t, childSet("a:1")))

	c.edit(t, func(p *appv1.PodSet) { p.Spec.Replicas = 5 })
	expect("an edit by hand is put right", c.apply(t, childSet("a:1")), "Configured PodSet child (spec.replicas)")

	c.edit(t, func(p *appv1.PodSet) {
		p.Spec.Template.Spec.Containers = append(p.Spec.Template.Spec.Containers, corev1.Container{Name: "side", Image: "b:1"})
	})
	c.restart(t)
	expect("what others add to a list stays", c.apply(t, childSet("a:1")))

	changed := c.apply(t, childSet("a:2"))
	if len(changed) != 1 {
		t.Errorf("another image is written: %v", changed)
	}
	is, err := get(t, &appv1.PodSet{}, c.owner.Namespace, "child")
	must(t, err)
	images := []string{}
	for _, container := range is.Spec.Template.Spec.Containers {
		images = append(images, container.Image)
	}
	if slices.Sort(images); !slices.Equal(images, []string{"a:2", "b:1"}) {
		t.Errorf("the containers have the images %v", images)
	}

	c.edit(t, func(p *appv1.PodSet) { p.Spec.Replicas = 5 })
	eventually(t, "the cache shows the edit", c.shown(t))
	c.restart(t)
	drifts, err := c.applier.FindDrift(t.Context(), c.owner, []lifecycle.Object{childSet("a:2")}, true)
	must(t, err)
	if len(drifts) != 1 || !slices.Equal(drifts[0].Fields, []string{"spec.replicas"}) || !slices.Equal(drifts[0].Managers, []string{"by-hand"}) {
		t.Errorf("the drift of an edit after a restart: %v", drifts)
	}

	c.restart(t)
	expect("it is pruned", c.apply(t), "Pruned PodSet child")
}
