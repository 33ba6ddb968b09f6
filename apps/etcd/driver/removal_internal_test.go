package driver

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// A claim is deleted only with the mark of its own removal: a copy from a backup has another UID.
func TestDeleteMemberKeepsUnmarkedClaims(t *testing.T) {
	cases := map[string]struct {
		reason string
		mark   string
		args   map[string]string
		gone   bool
	}{
		"Marked":   {"Governor removed its member", etcd.RemovalMark("a1", "u1"), nil, true},
		"Unmarked": {"a user removed its member", "", nil, false},
		"Restored": {"a backup has the mark of the claim that it was made of", etcd.RemovalMark("a1", "u0"), nil, false},
		"NoID":     {"a mark without a member is none", etcd.RemovalMark("", "u1"), nil, false},
		"Retained": {"the step keeps it", etcd.RemovalMark("a1", "u1"), map[string]string{etcd.ArgRetention: string(etcdv1.RetentionRetain)}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "e-2-hash", UID: types.UID("u1"), Annotations: map[string]string{etcd.AnnotationRemoving: c.mark},
			}}
			d := &Driver{client: fake.NewClientBuilder().WithObjects(claim).Build()}
			p := parts{claims: map[string]*corev1.PersistentVolumeClaim{"e-2": claim}}
			if err := d.deleteMember(t.Context(), p, lifecycle.Step{Name: etcd.DeleteMember, Target: "e-2", Args: c.args}); err != nil {
				t.Fatal(err)
			}
			err := d.client.Get(t.Context(), client.ObjectKeyFromObject(claim), &corev1.PersistentVolumeClaim{})
			if apierrors.IsNotFound(err) != c.gone {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

func TestMarkRemoval(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e-2-hash", UID: "u1"}}
	d := &Driver{client: fake.NewClientBuilder().WithObjects(claim).Build()}
	for _, id := range []string{"a1", ""} {
		now := &corev1.PersistentVolumeClaim{}
		if err := d.client.Get(t.Context(), client.ObjectKeyFromObject(claim), now); err != nil {
			t.Fatal(err)
		}
		if err := d.markRemoval(t.Context(), parts{claims: map[string]*corev1.PersistentVolumeClaim{"e-2": now}}, "e-2", id); err != nil {
			t.Fatal(err)
		}
		if err := d.client.Get(t.Context(), client.ObjectKeyFromObject(claim), now); err != nil || removing(now) != (id != "") {
			t.Errorf("with the ID %q: %v, %v", id, now.Annotations, err)
		}
	}
	if err := d.markRemoval(t.Context(), parts{}, "e-2", "a1"); err != nil {
		t.Errorf("without a claim: %v", err)
	}
}

// A claim with an invented number is no member's, and uses up no number.
func TestInventedClaimsAreNoMembers(t *testing.T) {
	want := plain("")
	want.Status.Bootstrap = &etcdv1.BootstrapStatus{NextMember: 5}
	p := parts{claims: map[string]*corev1.PersistentVolumeClaim{"my-etcd-4": {}, "my-etcd-9223372036854775806": {}, "my-etcd-8": {}}}
	if all := members(want, p, memberList{}, nil); len(all) != 1 || all[0].Name != "my-etcd-4" {
		t.Errorf("the members are %+v", all)
	}
	want.Status.Bootstrap = nil
	if all := members(want, p, memberList{}, nil); len(all) != 2 {
		t.Errorf("without a record they are %+v", all)
	}
}

// A platform's policy may forbid the deletion of volumes. The volume is kept and reported, and no repair waits for it.
func TestARefusedDeletionKeepsTheVolume(t *testing.T) {
	for name, refusal := range map[string]error{
		"Policy": apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "e-2-hash", nil),
		"Rights": apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "e-2-hash", nil),
		"Outage": apierrors.NewInternalError(errSilent),
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "e-2-hash", UID: "u1", Annotations: map[string]string{etcd.AnnotationRemoving: etcd.RemovalMark("a1", "u1")},
			}}
			refuse := interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refusal }}
			d := &Driver{client: fake.NewClientBuilder().WithObjects(claim).WithInterceptorFuncs(refuse).Build()}
			p := parts{claims: map[string]*corev1.PersistentVolumeClaim{"e-2": claim}}
			err := d.deleteMember(t.Context(), p, lifecycle.Step{Name: etcd.DeleteMember, Target: "e-2"})
			now := &corev1.PersistentVolumeClaim{}
			if err := d.client.Get(t.Context(), client.ObjectKeyFromObject(claim), now); err != nil {
				t.Fatal(err)
			}
			if kept := name != "Outage"; (err == nil) != kept || removing(now) == kept {
				t.Errorf("%v, and the mark is %v", err, now.Annotations)
			}
		})
	}
}
