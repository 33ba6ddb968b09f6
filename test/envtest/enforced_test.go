package envtest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/readyourwrites"
	"github.com/governor-dev/governor/lifecycle"
)

// configured returns an applier of ConfigMaps, Secrets and Services, and their owner.
func configured(t *testing.T) (*apply.Applier, client.Object) {
	t.Helper()
	namespace := newNamespace(t)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "parent"}}
	must(t, api.Create(t.Context(), owner))
	seen, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	must(t, err)
	kinds := []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}}
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
	return apply.New("parent", cached, api, readyourwrites.New(cached, api, time.Now), kinds, schemas.OpenAPIV3WithContext(t.Context()), time.Now), owner
}

func object(name, value string, annotations map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Data: map[string]string{"key": value}}
}

// If drift is only reported, objects that the application marks as always repaired are
// repaired anyway.
func TestAlwaysRepairedObjectsAreRepaired(t *testing.T) {
	applier, owner := configured(t)
	wanted := []lifecycle.Object{
		object("bootstrap", "declared", map[string]string{lifecycle.AnnotationDrift: lifecycle.DriftRepair}), object("other", "declared", nil),
	}
	provided := []string{"ConfigMap/bootstrap", "ConfigMap/other"}
	spare := func() error {
		_, _, err := applier.ApplyAround(t.Context(), owner, wanted, provided)
		return err
	}
	_, err := applier.Apply(t.Context(), owner, wanted)
	must(t, err)
	for _, name := range []string{"bootstrap", "other"} {
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
		return has("bootstrap", "declared")
	})
	must(t, has("other", "edited"))
	must(t, api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: "bootstrap"}}))
	eventually(t, "the deleted object is recreated", func() error {
		must(t, spare())
		return has("bootstrap", "declared")
	})
}

// Users may choose the type of a Service, except ExternalName: then clients would reach a foreign
// name. If drift is only reported, it is reported.
func TestExternalNameOfServiceIsRepaired(t *testing.T) {
	for name, address := range map[string]string{"balanced": "", "headless": corev1.ClusterIPNone} {
		t.Run(name, func(t *testing.T) {
			applier, owner := configured(t)
			wanted := []lifecycle.Object{&corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.ServiceSpec{
					ClusterIP: address, Selector: map[string]string{"a": "b"},
					Ports: []corev1.ServicePort{{Name: "client", Port: 2379, Protocol: corev1.ProtocolTCP}},
				},
			}}
			_, err := applier.Apply(t.Context(), owner, wanted)
			must(t, err)
			svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: name}}
			choose := func(spec string) {
				patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":`+spec+`}`))
				must(t, api.Patch(t.Context(), svc, patch, client.FieldOwner("kubectl-patch")))
			}
			choose(`{"type":"ExternalName","externalName":"elsewhere.example.com"}`)
			eventually(t, "it is reported", func() error {
				_, drifts, err := applier.ApplyAround(t.Context(), owner, wanted, nil)
				if err == nil && (len(drifts) != 1 || !slices.Contains(drifts[0].Fields, "spec.type")) {
					err = fmt.Errorf("the drift is %v", drifts)
				}
				return err
			})
			eventually(t, "it is repaired", func() error {
				_, err := applier.Apply(t.Context(), owner, wanted)
				must(t, err)
				svc, err = get(t, svc, owner.GetNamespace(), name)
				if err == nil && svc.Spec.Type != corev1.ServiceTypeClusterIP {
					err = fmt.Errorf("the type is %s", svc.Spec.Type)
				}
				return err
			})
			if address != "" {
				return
			}
			choose(`{"type":"NodePort"}`)
			eventually(t, "the applier has seen another type", func() error {
				_, err := applier.Apply(t.Context(), owner, wanted)
				must(t, err)
				names, err := applier.FindDrift(t.Context(), owner, wanted, true)
				must(t, err)
				if svc, err = get(t, svc, owner.GetNamespace(), name); err == nil && (len(names) > 0 || svc.Spec.Type != corev1.ServiceTypeNodePort) {
					err = fmt.Errorf("the type is %s, drift %v", svc.Spec.Type, names)
				}
				return err
			})
		})
	}
}
