package driver

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
)

// The cluster owns the volumes of its members, and no copy of one, whose name may end like a member's: garbage
// collection would delete the copy with the cluster.
func TestSetRetentionOwnsNoCopies(t *testing.T) {
	want := plain("")
	labels := map[string]string{lifecycle.LabelApp: etcd.Name, lifecycle.LabelInstance: want.Name}
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: name, UID: types.UID(name), Labels: labels}}
	}
	member, backup := claim(etcd.ClaimName(want, "my-etcd-0")), claim(etcd.ClaimName(want, "backup-my-etcd-0"))
	api := fake.NewClientBuilder().WithObjects(member, backup).Build()
	d := New(kube.Access{Client: api, Live: api, Now: time.Now}).(*Driver)
	p, err := d.gather(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	v := view{parts: p, world: etcd.World{Members: []etcd.Member{{Name: "my-etcd-0", Volume: etcd.Volume{Exists: true}}}}}
	s := lifecycle.Step{Name: etcd.SetRetention, Args: map[string]string{etcd.ArgRetention: string(etcdv1.RetentionDelete)}}
	if err := d.setOwners(t.Context(), want, v, s); err != nil {
		t.Fatal(err)
	}
	for claim, owned := range map[*corev1.PersistentVolumeClaim]bool{member: true, backup: false} {
		if err := d.client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		if owns(want, claim) != owned {
			t.Errorf("%s is owned: %v", claim.Name, !owned)
		}
	}
}
