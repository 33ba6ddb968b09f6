package main

import (
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// beside is an adversary with an API server that has the objects.
func beside(t *testing.T, objects ...client.Object) *adversary {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, etcdv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&etcdv1.EtcdCluster{}).Build()
	l := layout{3, []string{plain}}
	return newAdversary(&subject{arena: &arena{api: api, out: io.Discard, all: options{}.catalogue()}, layout: l, Instance: l.instance("ns")})
}

func stalledBy(reason, message string) *etcdv1.EtcdCluster {
	o := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: instanceName, UID: "instance"}}
	o.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue, Reason: reason, Message: message}}
	return o
}

// What stands for a while is done, and not twice in a row.
func TestAPersonDoesWhatTheInstanceSays(t *testing.T) {
	o := stalledBy("VersionRefused", "etcd 3.6.1 cannot be downgraded to 3.5.0: its data has the newer format. Set spec.version to 3.6 or newer.")
	o.Spec.Version = "3.5"
	v := beside(t, o)
	version := func() string {
		now, err := v.object(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now.Spec.Version
	}
	if err := v.attend(t.Context()); err == nil || version() != "3.5" {
		t.Errorf("a person acts at once: %v, %s", err, version())
	}
	v.person.since = time.Now().Add(-readsFor)
	if err := v.attend(t.Context()); err == nil || version() != "3.6" {
		t.Errorf("nothing is done: %v, %s", err, version())
	}
	if err := v.amend(t.Context(), func(o *etcdv1.EtcdCluster) { o.Spec.Version = "3.5" }); err != nil {
		t.Fatal(err)
	}
	if err := v.attend(t.Context()); err == nil || version() != "3.5" {
		t.Errorf("it is done again at once: %v, %s", err, version())
	}
	if diff := cmp.Diff([]string{"VersionRefused"}, v.person.acts()); diff != "" {
		t.Error(diff)
	}
}

func TestRemediesOnObjects(t *testing.T) {
	meta := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, Finalizers: finalizers, Labels: map[string]string{lifecycle.LabelInstance: instanceName}}
	}
	cases := map[string]struct {
		said stall
		with client.Object
		left bool
	}{
		"Orphan":    {stall{"NameTaken", "An earlier cluster of this name still runs: StatefulSet etcd-0. Governor does not change it. Delete it, or give this object another name. Its volumes stay, and this object starts empty."}, &appsv1.StatefulSet{ObjectMeta: meta("etcd-0")}, false},
		"Foreign":   {stall{"NameTaken", `Service "etcd" exists and was not made by Governor, or others removed its owner reference, which you can set again. It is left alone. Remove or rename it, or give this object another name.`}, &corev1.Service{ObjectMeta: meta("etcd")}, false},
		"Pod":       {stall{"ContainerCannotStart", "etcd-0: container s: x. Governor does not declare this container. Correct what adds it, e.g. an admission webhook, then delete the pod."}, &corev1.Pod{ObjectMeta: meta("etcd-0-0")}, false},
		"Finalizer": {stall{"DeletionStuck", "etcd-0 cannot be started again: the StatefulSet etcd-0 is being deleted, and the finalizer a of another controller keeps it. Let the owner of the finalizer finish, or remove it with kubectl edit; Governor then creates the object again."}, &appsv1.StatefulSet{ObjectMeta: meta("etcd-0", "a/b", chaos.ForeignFinalizer)}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := beside(t, c.with)
			r, words, err := c.said.remedyOf()
			if err != nil {
				t.Fatal(err)
			}
			if err := r.do(t.Context(), v, words); err != nil {
				t.Fatal(err)
			}
			err = v.api.Get(t.Context(), client.ObjectKeyFromObject(c.with), c.with)
			if (err == nil) != c.left || c.left && len(c.with.GetFinalizers()) != 1 {
				t.Errorf("left: %v, finalizers %v", err, c.with.GetFinalizers())
			}
		})
	}
}

// The inventory of a deletion follows the owner references, and not the labels.
func TestInventoryFollowsOwners(t *testing.T) {
	ours := map[string]string{lifecycle.LabelInstance: instanceName}
	meta := func(name string, uid types.UID, owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Labels: ours, OwnerReferences: owners}
	}
	by := func(kind, name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: uid}
	}
	o := stalledBy("", "")
	cluster := by("EtcdCluster", instanceName, o.UID)
	v := beside(t, o,
		&appsv1.StatefulSet{ObjectMeta: meta("etcd-0", "set", cluster)},
		&corev1.Pod{ObjectMeta: meta("etcd-0-0", "pod", by("StatefulSet", "etcd-0", "set"))},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta("kept", "k")},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta("goes", "g", cluster)},
		&corev1.Secret{ObjectMeta: meta("own", "o")},
	)
	what, _ := v.all.Named("etcdcluster-delete-background")
	if err := v.depart(t.Context(), what); err != nil {
		t.Fatal(err)
	}
	names := func(all []bystander) (names []string) {
		for _, b := range all {
			names = append(names, b.key.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"etcd-0", "goes", "etcd-0-0"}, names(v.departed.owned)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"kept"}, names(v.departed.kept)); diff != "" {
		t.Error(diff)
	}
	if v.allGone(t.Context(), v.departed.owned) == nil || v.stays(t.Context(), v.departed.kept) != nil {
		t.Error("all of them are there")
	}
	if err := v.remove1(t.Context(), chaos.PersistentVolumeClaim, "kept"); err != nil || v.stays(t.Context(), v.departed.kept) == nil {
		t.Errorf("a volume that should stay is gone: %v", err)
	}
}
