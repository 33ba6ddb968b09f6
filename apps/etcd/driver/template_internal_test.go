package driver

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube/dryrun"
)

// templated is a cluster, and the world in which its only member has the template of its spec.
func templated() (*etcdv1.EtcdCluster, etcd.World) {
	want := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: "u"}}
	want.Spec.Size, want.Spec.TLS.Mode = 1, etcdv1.TLSModeDisabled
	etcd.Planner{}.Status(want, etcd.World{})
	set := etcd.Set{Exists: true, Revision: etcd.Revision(want), Version: etcd.Newest}
	return want, etcd.World{Listed: true, Members: []etcd.Member{{
		Name: "e-0", ID: 1, Role: etcd.Voter, Joined: true, Health: etcd.Healthy, Version: etcd.Newest, Set: set,
		Volume: etcd.Volume{Exists: true}, Pod: etcd.Pod{Exists: true, Ready: true, Revision: set.Revision, Version: set.Version},
	}}}
}

// refusing is an API server that refuses every pod, and the pods that it was asked for in dry runs.
func refusing(t *testing.T) (client.Client, *[]*corev1.Pod) {
	t.Helper()
	var asked []*corev1.Pod
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if o := (client.CreateOptions{}); len(o.ApplyOptions(opts).DryRun) != 1 {
				t.Error("a pod is created")
			}
			asked = append(asked, obj.(*corev1.Pod))
			return apierrors.NewForbidden(corev1.Resource("pods"), obj.GetName(), errors.New("no"))
		},
	}).Build(), &asked
}

// At rest no request is sent. A member with another template is asked for as the StatefulSet
// controller would create its pod.
func TestNextPodIsTriedWhileAMemberIsOutdated(t *testing.T) {
	want, seen := templated()
	api, asked := refusing(t)
	d := &Driver{client: api, templates: dryrun.New(func() time.Time { return time.Unix(0, 0) })}
	if v := d.tryTemplate(t.Context(), want, seen); len(*asked) != 0 || v.Template != "" {
		t.Errorf("at rest it asks for %v: %+v", *asked, v)
	}
	want.Spec.Pod.ServiceAccountName = "none"
	v := d.tryTemplate(t.Context(), want, seen)
	s, _ := etcd.NextTemplate(want, seen)
	if len(*asked) != 1 || !v.Refuses(etcd.TemplateOf(s)) {
		t.Fatalf("it asks for %v: %+v", *asked, v)
	}
	pod := (*asked)[0]
	owner := metav1.GetControllerOf(pod)
	if pod.Namespace != "ns" || pod.Name != "e-0-0" || pod.Spec.Hostname != "e-0-0" || pod.Spec.ServiceAccountName != "none" ||
		pod.Labels["statefulset.kubernetes.io/pod-name"] != "e-0-0" || pod.Labels[etcd.LabelMember] != "e-0" || owner == nil || owner.Name != "e-0" || owner.BlockOwnerDeletion != nil {
		t.Errorf("the pod is %+v", pod)
	}
	want.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	if d.tryTemplate(t.Context(), want, seen); len(*asked) != 1 {
		t.Error("a cluster that is being deleted needs no pod")
	}
}

// A preview forgets what is known of the template of the present spec.
func TestTryTemplateOfAPreview(t *testing.T) {
	want, seen := templated()
	api, asked := refusing(t)
	edited := want.DeepCopy()
	edited.Spec.Pod.ServiceAccountName = "none"
	before := TryTemplate(t.Context(), api, edited, seen)
	if back := TryTemplate(t.Context(), api, want, before); before.Template.Refusal == "" || back.Template.Refusal != "" || len(*asked) != 1 {
		t.Errorf("%+v, and back %+v", before.Template, back.Template)
	}
}
