package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
)

// podKeeper is a kind that keeps a number of pods.
type podKeeper interface {
	kind() string
	fresh(name string) client.Object
	// reported returns the number of pods, and of available pods, in the object's status.
	reported(obj client.Object) (pods, available int)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// podSpec is the pod of both kinds.
var podSpec = corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}}

var contenders = []podKeeper{replicaSet{}, podSet{}}

type replicaSet struct{}

func (replicaSet) kind() string { return "ReplicaSet" }

func (replicaSet) fresh(name string) client.Object {
	labels := map[string]string{"app": name}
	return &appsv1.ReplicaSet{ObjectMeta: named(name), Spec: appsv1.ReplicaSetSpec{
		Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec},
	}}
}

func (replicaSet) reported(obj client.Object) (pods, available int) {
	st := obj.(*appsv1.ReplicaSet).Status
	return int(st.Replicas), int(st.AvailableReplicas)
}

type podSet struct{}

func (podSet) kind() string { return "PodSet" }

func (podSet) fresh(name string) client.Object {
	return &appv1.PodSet{ObjectMeta: named(name), Spec: appv1.PodSetSpec{Replicas: 1, Template: appv1.PodTemplate{Spec: podSpec}}}
}

func (podSet) reported(obj client.Object) (pods, available int) {
	st := obj.(*appv1.PodSet).Status
	return int(st.Replicas), int(st.AvailableReplicas)
}

// durations is the durations of one set, in seconds.
type durations struct {
	// Made is when all pods exist. Ready is when the status says that all are available.
	Made  float64 `json:"made"`
	Ready float64 `json:"ready"`
	// Gone is when only one pod is left. Told is when the status says so.
	Gone float64 `json:"gone"`
	Told float64 `json:"told"`
	// GrowWork and ShrinkWork are the CPU time of all processes together.
	GrowWork   float64 `json:"growWork"`
	ShrinkWork float64 `json:"shrinkWork"`
}

func (s *testEnv) measure(ctx context.Context, c podKeeper, o options) (l durations, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	if err := s.createSet(ctx, c); err != nil {
		return l, err
	}
	before := work()
	if l.Made, l.Ready, err = s.scale(ctx, c, o.size); err != nil {
		return l, err
	}
	between := work()
	if l.Gone, l.Told, err = s.scale(ctx, c, 1); err != nil {
		return l, err
	}
	l.GrowWork, l.ShrinkWork = between-before, work()-between
	return l, s.clear(ctx, c)
}

// createSet creates a set of one pod. Each set has its own name, so that cached state about
// the previous one makes no difference.
func (s *testEnv) createSet(ctx context.Context, c podKeeper) error {
	s.sets++
	if err := s.Create(ctx, s.subject(c)); err != nil {
		return err
	}
	return s.until(ctx, "the first pod", s.reports(ctx, c, 1))
}

// subject returns the present set.
func (s *testEnv) subject(c podKeeper) client.Object {
	return c.fresh(fmt.Sprintf("subject-%d", s.sets))
}

// scale returns the seconds until the number of pods is reached, and until the object
// reports it.
func (s *testEnv) scale(ctx context.Context, c podKeeper, size int) (exist, reported float64, err error) {
	began := time.Now()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, size))
	if err := s.Patch(ctx, s.subject(c), patch); err != nil {
		return 0, 0, err
	}
	err = s.until(ctx, fmt.Sprintf("%d pods exist", size), func() (bool, error) {
		n, err := s.count(ctx)
		return n == size, err
	})
	if err != nil {
		return 0, 0, err
	}
	exist = time.Since(began).Seconds()
	err = s.until(ctx, fmt.Sprintf("the status shows %d pods", size), s.reports(ctx, c, size))
	return exist, time.Since(began).Seconds(), err
}

func (s *testEnv) count(ctx context.Context) (int, error) {
	list := &corev1.PodList{}
	err := s.cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	return len(list.Items), err
}

// reports checks the object in the watch cache. Polling would cost the API server work, and
// more of it the longer the status is.
func (s *testEnv) reports(ctx context.Context, c podKeeper, size int) func() (bool, error) {
	return func() (bool, error) {
		obj := s.subject(c)
		err := s.cache.Get(ctx, client.ObjectKeyFromObject(obj), obj, client.UnsafeDisableDeepCopy)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		pods, available := c.reported(obj)
		return pods == size && available == size, nil
	}
}

// clear deletes everything, so that the next measurement starts with the same API server.
func (s *testEnv) clear(ctx context.Context, c podKeeper) error {
	if err := s.Delete(ctx, s.subject(c), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.Event{}, &corev1.ConfigMap{}} {
		if err := s.DeleteAllOf(ctx, kind, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	return s.until(ctx, "all pods are gone", func() (bool, error) {
		n, err := s.count(ctx)
		return n == 0, err
	})
}
