package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// hurtInstallation does it to one of Governor's own objects. What lasts ends when the administrator installs
// the object again, as it was.
func (v *adversary) hurtInstallation(ctx context.Context, what chaos.Manipulation, target int) (does.Done, error) {
	found, err := v.Find(ctx, v.api, what.Object)
	if err != nil {
		return does.Done{}, err
	}
	done, err := v.Do(ctx, v.api, what, target)
	if done.Undo = nil; !what.Lasts {
		return done, err
	}
	saved := slices.DeleteFunc(found, func(o unstructured.Unstructured) bool { return !slices.Contains(done.Objects, o.GetName()) })
	done.Undo = func(ctx context.Context) error { return v.install(ctx, saved) }
	v.installs = append(v.installs, done.Undo)
	return done, err
}

// grantOperator installs what the adversary took from the operator.
func grantOperator(ctx context.Context, v *adversary, _ []string) error {
	var all error
	for _, install := range v.installs {
		all = errors.Join(all, install(ctx))
	}
	return all
}

// install writes the objects back as they were. The tokens of a ServiceAccount end with it: the operator's
// pods need new ones.
func (v *adversary) install(ctx context.Context, all []unstructured.Unstructured) error {
	for i := range all {
		created, err := v.restore(ctx, &all[i])
		if err != nil {
			return fmt.Errorf("cannot install the %s %s: %w", all[i].GetKind(), all[i].GetName(), err)
		}
		if !created || all[i].GetKind() != "ServiceAccount" {
			continue
		}
		if err := v.api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(operatorSpace), client.MatchingLabels{"app.kubernetes.io/name": "governor"}); err != nil {
			return err
		}
	}
	return nil
}

func (v *adversary) restore(ctx context.Context, was *unstructured.Unstructured) (created bool, err error) {
	return created, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(was.GroupVersionKind())
		err := v.api.Get(ctx, client.ObjectKeyFromObject(was), now)
		manifest := was.DeepCopy()
		manifest.SetManagedFields(nil)
		unstructured.RemoveNestedField(manifest.Object, "status")
		if created = apierrors.IsNotFound(err); created {
			manifest.SetUID("")
			manifest.SetResourceVersion("")
			return v.api.Create(ctx, manifest)
		}
		if err != nil {
			return err
		}
		manifest.SetUID(now.GetUID())
		manifest.SetResourceVersion(now.GetResourceVersion())
		return v.api.Update(ctx, manifest)
	})
}

// trusting are the objects that say which authority signs the certificate of the webhooks, and where.
var trusting = map[schema.GroupVersionKind][]string{
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}: {"governor"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}:   {"governor"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}:               {"etcdclusters.etcd.database.coreos.com"},
}

// operates waits until the operator is available, the webhooks are trusted, and the API server converts.
func (v *adversary) operates(ctx context.Context) error {
	if err := v.ready(ctx); err != nil {
		return err
	}
	return await(ctx, time.Minute, time.Second, func(ctx context.Context) error {
		return errors.Join(v.trusted(ctx), v.converts(ctx))
	})
}

// trusted checks that all trust the same authority, and none trusts nothing.
func (v *adversary) trusted(ctx context.Context) error {
	var first any
	for kind, names := range trusting {
		for _, name := range names {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(kind)
			if err := v.api.Get(ctx, client.ObjectKey{Name: name}, o); err != nil {
				return err
			}
			bundle := bundleOf(o)
			if first == nil {
				first = bundle
			}
			if bundle == nil || !reflect.DeepEqual(bundle, first) {
				return fmt.Errorf("the %s %s does not trust the authority of the webhooks: %w", kind.Kind, name, errNotYet)
			}
		}
	}
	return nil
}

func bundleOf(o *unstructured.Unstructured) any {
	hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	if len(hooks) > 0 {
		hook, _ := hooks[0].(map[string]any)
		bundle, _, _ := unstructured.NestedFieldNoCopy(hook, "clientConfig", "caBundle")
		return bundle
	}
	bundle, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	return bundle
}

// converts reads the instance in v1beta2, which the operator converts.
func (v *adversary) converts(ctx context.Context) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: etcdv1.GroupVersion.Group, Version: "v1beta2", Kind: v.Kind.Kind})
	return client.IgnoreNotFound(v.api.Get(ctx, v.Key, o))
}
