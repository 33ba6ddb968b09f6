package driver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// Another default quota is no edit of the StatefulSet.
func TestKeepQuota(t *testing.T) {
	with := func(args ...string) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{}
		s.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
		return s
	}
	cases := map[string]struct{ has, want []string }{
		"Same":    {[]string{"--a", "--quota-backend-bytes=2"}, []string{"--a", "--quota-backend-bytes=2"}},
		"Another": {[]string{"--a", "--quota-backend-bytes=1"}, []string{"--a", "--quota-backend-bytes=1"}},
		"None":    {[]string{"--a"}, []string{"--a"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			declared := with("--a", "--quota-backend-bytes=2")
			keepQuota(&etcdv1.EtcdCluster{}, declared, with(c.has...))
			if got := declared.Spec.Template.Spec.Containers[0].Args; !slices.Equal(got, c.want) {
				t.Errorf("the declared flags are %v", got)
			}
		})
	}
}

// An empty name of a class is a claim for a volume without one. No StorageClass has that name, and the API
// server's client refuses to read it.
func TestClaimWithoutClass(t *testing.T) {
	live := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return errors.New("resource name may not be empty")
		},
	}).Build()
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("")}}
	problem, err := (&Driver{live: live}).problem(t.Context(), &etcdv1.EtcdCluster{}, claim, false)
	if err != nil || !strings.Contains(problem, "no PersistentVolume without a class") {
		t.Errorf("%q, %v", problem, err)
	}
}

// A pod that is older than the growth of its volume awaits its successor, by its identity: the clocks of the operator and of
// the API server differ.
func TestOnlyThePodOfTheGrowthAwaitsAnother(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationGrown: "old"}}}
	for uid, want := range map[types.UID]bool{"old": true, "new": false} {
		if got := awaitsPod(claim, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}); got != want {
			t.Errorf("the pod %s awaits another one: %t", uid, got)
		}
	}
	if awaitsPod(claim, nil) || awaitsPod(&corev1.PersistentVolumeClaim{}, &corev1.Pod{}) {
		t.Error("no pod awaits another one")
	}
}
