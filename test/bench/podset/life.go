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

// contender is a kind that keeps a number of pods.
type contender interface {
	kind() string
	fresh(name string) client.Object
	// told are the pods, and those available, that the object's status tells.
	told(obj client.Object) (pods, available int)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// body is the pod of both.
var body = corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}}

var contenders = []contender{replicaSet{}, podSet{}}

type replicaSet struct{}

func (replicaSet) kind() string { return "ReplicaSet" }

func (replicaSet) fresh(name string) client.Object {
	labels := map[string]string{"app": name}
	return &appsv1.ReplicaSet{ObjectMeta: named(name), Spec: appsv1.ReplicaSetSpec{
		Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: body},
	}}
}

func (replicaSet) told(obj client.Object) (pods, available int) {
	st := obj.(*appsv1.ReplicaSet).Status
	return int(st.Replicas), int(st.AvailableReplicas)
}

type podSet struct{}

func (podSet) kind() string { return "PodSet" }

func (podSet) fresh(name string) client.Object {
	return &appv1.PodSet{ObjectMeta: named(name), Spec: appv1.PodSetSpec{Replicas: 1, Template: appv1.PodTemplate{Spec: body}}}
}

func (podSet) told(obj client.Object) (pods, available int) {
	st := obj.(*appv1.PodSet).Status
	return int(st.Replicas), int(st.AvailableReplicas)
}

// life is how long one set took, in seconds.
type life struct {
	// Made is until all pods exist, Ready until the status says that all are available.
	Made  float64 `json:"made"`
	Ready float64 `json:"ready"`
	// Gone is until all pods but one are gone, Told until the status says so.
	Gone float64 `json:"gone"`
	Told float64 `json:"told"`
	// GrowWork and ShrinkWork are the processor time of all processes together.
	GrowWork   float64 `json:"growWork"`
	ShrinkWork float64 `json:"shrinkWork"`
}

func (s *stage) live(ctx context.Context, c contender, o options) (l life, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	if err := s.begin(ctx, c); err != nil {
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

// begin makes a set of one pod. Each has a name of its own: who remembers the last one
// has no advantage and no disadvantage.
func (s *stage) begin(ctx context.Context, c contender) error {
	s.sets++
	if err := s.Create(ctx, s.subject(c)); err != nil {
		return err
	}
	return s.until(ctx, "the first pod", s.tells(ctx, c, 1))
}

// subject is the set of the present life.
func (s *stage) subject(c contender) client.Object { return c.fresh(fmt.Sprintf("subject-%d", s.sets)) }

// scale returns after how many seconds the pods are as many, and the object says so.
func (s *stage) scale(ctx context.Context, c contender, size int) (there, told float64, err error) {
	began := time.Now()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, size))
	if err := s.Patch(ctx, s.subject(c), patch); err != nil {
		return 0, 0, err
	}
	err = s.until(ctx, fmt.Sprintf("%d pods are there", size), func() (bool, error) {
		n, err := s.count(ctx)
		return n == size, err
	})
	if err != nil {
		return 0, 0, err
	}
	there = time.Since(began).Seconds()
	err = s.until(ctx, fmt.Sprintf("%d pods are told", size), s.tells(ctx, c, size))
	return there, time.Since(began).Seconds(), err
}

func (s *stage) count(ctx context.Context) (int, error) {
	list := &corev1.PodList{}
	err := s.cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	return len(list.Items), err
}

// tells looks at what the watch has brought: to ask again and again would be work for the
// API server, and more of it the longer the status is.
func (s *stage) tells(ctx context.Context, c contender, size int) func() (bool, error) {
	return func() (bool, error) {
		obj := s.subject(c)
		err := s.cache.Get(ctx, client.ObjectKeyFromObject(obj), obj, client.UnsafeDisableDeepCopy)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		pods, available := c.told(obj)
		return pods == size && available == size, nil
	}
}

// clear leaves the next one the same API server.
func (s *stage) clear(ctx context.Context, c contender) error {
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
