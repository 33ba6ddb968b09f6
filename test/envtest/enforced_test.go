package envtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/lifecycle"
)

// configured returns an applier of ConfigMaps and Secrets, and their owner.
func configured(t *testing.T) (*apply.Applier, client.Object) {
	t.Helper()
	namespace := newNamespace(t)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "parent"}}
	must(t, api.Create(t.Context(), owner))
	seen, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	must(t, err)
	kinds := []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}
	for _, kind := range kinds {
		must(t, seen.IndexField(t.Context(), kind, apply.OwnerIndex, apply.IndexOwner))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); _ = seen.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	if !seen.WaitForCacheSync(ctx) {
		t.Fatal("the cache does not start")
	}
	cached, err := client.New(config, client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: seen}})
	must(t, err)
	schemas, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	return apply.New("parent", cached, api, readyourwrites.New(cached, api, time.Now), kinds, schemas.OpenAPIV3WithContext(t.Context())), owner
}

func object(name, value string, annotations map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Data: map[string]string{"key": value}}
}

// If drift is only reported, objects that the application marks as always repaired are
// repaired anyway.
func TestWhatIsAlwaysRepairedIsNotSpared(t *testing.T) {
	applier, owner := configured(t)
	wanted := []lifecycle.Object{
		object("door", "declared", map[string]string{lifecycle.AnnotationDrift: lifecycle.DriftRepair}), object("other", "declared", nil),
	}
	provided := []string{"ConfigMap/door", "ConfigMap/other"}
	spare := func() error {
		_, _, err := applier.ApplyAround(t.Context(), owner, wanted, provided)
		return err
	}
	_, err := applier.Apply(t.Context(), owner, wanted)
	must(t, err)
	for _, name := range []string{"door", "other"} {
		c, err := get(t, &corev1.ConfigMap{}, owner.GetNamespace(), name)
		must(t, err)
		c.Data["key"] = "edited"
		must(t, api.Update(t.Context(), c, client.FieldOwner("by-hand")))
	}
	has := func(name, value string) error {
		c, err := get(t, &corev1.ConfigMap{}, owner.GetNamespace(), name)
		if err == nil && c.Data["key"] != value {
			err = fmt.Errorf("%s has %q, want %q", name, c.Data["key"], value)
		}
		return err
	}
	eventually(t, "the edited object is repaired", func() error {
		must(t, spare())
		return has("door", "declared")
	})
	must(t, has("other", "edited"))
	must(t, api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: "door"}}))
	eventually(t, "the deleted object is recreated", func() error {
		must(t, spare())
		return has("door", "declared")
	})
}
