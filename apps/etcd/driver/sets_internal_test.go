package driver

import (
	"errors"
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
		if err := d.findEdits(t.Context(), want, v); err != nil {
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

// Edits of the same generation are harmless, or not, by what depends on them.
func TestEditsAreSeparated(t *testing.T) {
	want := plain("")
	want.Spec.Size, want.Spec.Pod.Annotations = 1, map[string]string{"example.com/note": "a"}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), etcdv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	d := &Driver{edits: newEdits(), comparer: apply.NewComparer(scheme)}
	m := etcd.Member{Name: "my-etcd-0", Set: etcd.Set{Exists: true, Version: etcd.Newest, Revision: etcd.Revision(want), Exposure: etcd.Exposed}}
	set, err := etcd.StatefulSet(want, etcd.World{}, lifecycle.Step{Target: m.Name, Args: map[string]string{
		etcd.ArgVersion: m.Set.Version, etcd.ArgRevision: m.Set.Revision, etcd.ArgExposed: string(etcd.Exposed),
	}})
	if err != nil {
		t.Fatal(err)
	}
	set.UID, set.Generation, set.Namespace = "set", 1, want.Namespace
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(want, kind)}
	set.Spec.Template.Annotations["example.com/note"], set.Spec.Replicas = "b", new(int32(0))
	found, err := d.editOf(t.Context(), want, etcd.World{}, m, set)
	if err != nil || found.fields != "spec.replicas" || found.harmless != "spec.template.metadata.annotations.example.com/note" {
		t.Errorf("needed %q, harmless %q, %v", found.fields, found.harmless, err)
	}
	m.Pod.Exists, m.Pod.Ready, m.Pod.Trouble = true, true, lifecycle.PodProblemUnschedulable
	if found, err = d.editOf(t.Context(), want, etcd.World{}, m, set); err != nil || found.harmless != "" {
		t.Errorf("of a pod that cannot run: harmless %q, %v", found.harmless, err)
	}
}

// With driftPolicy Report, only fields may stay on which neither service nor data depends.
func TestHarmlessFields(t *testing.T) {
	for field, want := range map[string]bool{
		"spec.template.metadata.annotations.example.com/note":                true,
		"spec.template.metadata.annotations." + etcd.AnnotationVersion:       false,
		`spec.template.spec.containers[name="etcd"].resources.limits.memory`: true,
		`spec.template.spec.containers[name="etcd"].image`:                   false,
		"spec.template.spec.nodeSelector.zone":                               false,
		"spec.template.metadata.labels.etcd.database.coreos.com/exposed":     false,
		"spec.replicas":                                   false,
		"spec.updateStrategy.type":                        false,
		"spec.revisionHistoryLimit":                       true,
		"metadata.annotations." + etcd.AnnotationRevision: false,
	} {
		if got := isHarmless(field); got != want {
			t.Errorf("%s: harmless %t", field, got)
		}
	}
}
