package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle"
)

// subject is an etcd cluster under measurement.
type subject struct {
	name string
	size int
	// objects are the objects to apply.
	objects []client.Object
	// labels are the labels of its pods and volumes.
	labels client.MatchingLabels
	// service is the Service for clients.
	service types.NamespacedName
	// governed is false for the plain StatefulSet.
	governed  bool
	encrypted bool
}

// sample is the duration of an action, in seconds since its start.
type sample struct {
	// Healthy is when every member serves a linearizable read, and all are listed as
	// started voters.
	Healthy float64 `json:"healthySeconds"`
	// Ready is when all pods are ready and, with the operator, the EtcdCluster is ready
	// too.
	Ready float64 `json:"readySeconds"`
}

// create applies the objects and waits for both.
func (s *testEnv) create(ctx context.Context, x *subject) (sample, error) {
	began := time.Now()
	if err := s.apply(ctx, x); err != nil {
		return sample{}, err
	}
	return s.recover(ctx, x, began, nil)
}

func (s *testEnv) apply(ctx context.Context, x *subject) error {
	for _, obj := range x.objects {
		if err := s.Create(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// recover waits until the subject is healthy and ready without the lost pod, if any.
func (s *testEnv) recover(ctx context.Context, x *subject, began time.Time, lost *corev1.Pod) (sample, error) {
	var took sample
	err := s.until(ctx, x.name+" is healthy and ready", func(ctx context.Context) error {
		pods, err := s.members(ctx, x, lost)
		if err != nil {
			return err
		}
		note(&took.Ready, began, s.ready(ctx, x, pods))
		if took.Healthy == 0 {
			note(&took.Healthy, began, s.healthy(ctx, x, pods))
		}
		if took.Healthy == 0 || took.Ready == 0 {
			return fmt.Errorf("healthy for etcd: %t, ready for Kubernetes: %t", took.Healthy > 0, took.Ready > 0)
		}
		return nil
	})
	return took, err
}

// note records the time of the first success.
func note(at *float64, began time.Time, missing error) {
	if *at == 0 && missing == nil {
		*at = time.Since(began).Seconds()
	}
}

// members returns the pods. It fails unless there is the declared number and none is
// terminating.
func (s *testEnv) members(ctx context.Context, x *subject, lost *corev1.Pod) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := s.cache.List(ctx, &pods, client.InNamespace(namespace), x.labels, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.DeletionTimestamp != nil || lost != nil && p.UID == lost.UID {
			return nil, fmt.Errorf("the pod %s still exists", p.Name)
		}
	}
	if len(pods.Items) != x.size {
		return nil, fmt.Errorf("%d of %d pods", len(pods.Items), x.size)
	}
	return pods.Items, nil
}

func (s *testEnv) ready(ctx context.Context, x *subject, pods []corev1.Pod) error {
	for i := range pods {
		if !podReady(&pods[i]) {
			return fmt.Errorf("the pod %s is not ready", pods[i].Name)
		}
	}
	if !x.governed {
		return nil
	}
	object := &etcdv1.EtcdCluster{}
	if err := s.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: x.name}, object); err != nil {
		return err
	}
	c := apimeta.FindStatusCondition(object.Status.Conditions, lifecycle.ConditionReady)
	if c == nil || c.Status != "True" || c.ObservedGeneration != object.Generation || int(object.Status.ReadyReplicas) != x.size {
		return fmt.Errorf("the EtcdCluster is not ready")
	}
	return nil
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// remove deletes the subjects with their volumes, and waits for the end of the deletion,
// so that it does not slow down the next measurement.
func (s *testEnv) remove(ctx context.Context, all ...*subject) error {
	for _, x := range all {
		if err := s.delete(ctx, x); err != nil {
			return err
		}
	}
	return s.until(ctx, "all subjects are deleted", func(ctx context.Context) error {
		for _, x := range all {
			if err := s.gone(ctx, x); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
		return nil
	})
}

func (s *testEnv) delete(ctx context.Context, x *subject) error {
	for _, obj := range x.objects {
		if err := s.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if x.governed {
		return nil
	}
	return s.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(namespace), x.labels)
}

func (s *testEnv) gone(ctx context.Context, x *subject) error {
	var pods corev1.PodList
	var volumes corev1.PersistentVolumeClaimList
	err := errors.Join(
		s.cache.List(ctx, &pods, client.InNamespace(namespace), x.labels, client.UnsafeDisableDeepCopy),
		s.cache.List(ctx, &volumes, client.InNamespace(namespace), x.labels, client.UnsafeDisableDeepCopy),
	)
	if n := len(pods.Items) + len(volumes.Items); err == nil && n > 0 {
		return fmt.Errorf("%d pods and volumes still exist", n)
	}
	return err
}
