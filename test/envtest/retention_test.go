package envtest_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// After a change to Retain, Kubernetes would still delete the volumes until the operator has removed their
// owner: the API server refuses the deletion until then, in both versions.
func TestDeletionBeforeRetentionIsRefused(t *testing.T) {
	applied(t, "../../config/manager/retention.yaml")
	a := newConverter(t, time.Now())
	u := undeletable(t, a.namespace, "c", func(*unstructured.Unstructured) {})
	becomes := func(status etcdv1.Retention, paused bool, declared etcdv1.Retention) {
		c, err := get(t, &etcdv1.EtcdCluster{}, a.namespace, "c")
		must(t, err)
		c.Spec.Paused, c.Spec.Storage.Retention = paused, declared
		must(t, api.Update(t.Context(), c))
		c.Status = observedStatus()
		c.Status.VolumeRetention = status
		must(t, api.Status().Update(t.Context(), c))
	}
	becomes(etcdv1.RetentionDelete, true, etcdv1.RetentionRetain)
	refusesDeletion(t, u, "Set spec.paused to false, and wait until status.volumeRetention is Retain")
	old := etcdObject(t, "v1beta2", "c", a.namespace, "")
	refusesDeletion(t, old, "spec.storage.retention of c is Retain, and Kubernetes would still delete its volumes")
	must(t, tryDeletion(t, u, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	becomes(etcdv1.RetentionDelete, false, etcdv1.RetentionRetain)
	refusesDeletion(t, u, "Wait until status.volumeRetention is Retain, which takes as long as")
	becomes(etcdv1.RetentionDelete, false, etcdv1.RetentionDelete)
	must(t, tryDeletion(t, u))
	becomes(etcdv1.RetentionRetain, false, etcdv1.RetentionRetain)
	must(t, tryDeletion(t, u))
}

// A deletion that waits for another controller's finalizer takes the volumes. A change to Retain would be in vain.
func TestRetentionOfADeletedClusterIsRefused(t *testing.T) {
	applied(t, "../../config/manager/retention.yaml")
	namespace := newNamespace(t)
	deletes := func(name string, finalizers ...string) *unstructured.Unstructured {
		return undeletable(t, namespace, name, func(u *unstructured.Unstructured) {
			must(t, unstructured.SetNestedField(u.Object, "Delete", "spec", "storage", "retention"))
			u.SetFinalizers(finalizers)
		})
	}
	retain := func(u *unstructured.Unstructured) error {
		return api.Patch(t.Context(), u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"storage":{"retention":"Retain"}}}`)), client.DryRunAll)
	}
	foreign, held := deletes("foreign", "example.com/other"), deletes("held", holder)
	must(t, retain(foreign))
	must(t, errors.Join(api.Delete(t.Context(), foreign), api.Delete(t.Context(), held)))
	deletionRefused(t, foreign, "remove its owner: kubectl -n "+namespace+" patch pvc", func() error { return retain(foreign) })
	must(t, retain(held))
}
