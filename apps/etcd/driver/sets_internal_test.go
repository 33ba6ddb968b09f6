package driver

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// A StatefulSet that an admission webhook keeps unchanged counts as edited until the declaration
// was applied once. It counts again after another generation or a loss of labels.
func TestEditIsRevertedOncePerGeneration(t *testing.T) {
	want := plain("")
	want.Spec.Size = 1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, etcdv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	d := &Driver{edits: newEdits(), comparer: apply.NewComparer(scheme)}
	member := etcd.Member{Name: "my-etcd-0", Set: etcd.Set{Exists: true, Version: etcd.Newest, Revision: etcd.Revision(want), Exposure: etcd.Exposed}}
	found, err := etcd.StatefulSet(want, etcd.World{}, lifecycle.Step{Target: member.Name, Args: map[string]string{
		etcd.ArgVersion: member.Set.Version, etcd.ArgRevision: member.Set.Revision, etcd.ArgExposed: string(etcd.Exposed),
	}})
	if err != nil {
		t.Fatal(err)
	}
	found.UID, found.Generation, found.Namespace = "set", 1, want.Namespace
	found.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(want, kind)}
	edited := func() string {
		t.Helper()
		v := view{world: etcd.World{Members: []etcd.Member{member}}, parts: parts{sets: map[string]*appsv1.StatefulSet{member.Name: found}}}
		if err := d.findEdits(want, v); err != nil {
			t.Fatal(err)
		}
		return v.world.Members[0].Set.Edited
	}
	expect := func(is bool, reason string) {
		t.Helper()
		if got := edited(); (got != "") != is {
			t.Errorf("%s: edited %q", reason, got)
		}
	}
	found.Spec.Template.Spec.Containers[0].Image = "mirror/etcd"
	found.Generation++
	expect(true, "another image")
	d.edits.applied(found)
	expect(false, "applied, and no other generation came of it")
	found.Spec.Replicas = new(int32(0))
	found.Generation++
	expect(true, "another generation")
	d.edits.applied(found)
	delete(found.Labels, lifecycle.LabelInstance)
	expect(true, "lost labels")
}
