package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

const (
	// namespace is the namespace of all measurements. The run deletes it at the end.
	namespace = "governor-bench"
	// operatorNamespace is the namespace of the operator.
	operatorNamespace = "governor-system"

	// pollInterval is the polling interval, and so the error of a measured time.
	pollInterval = 25 * time.Millisecond
	// progressInterval is the interval of progress messages during a wait.
	progressInterval = 5 * time.Second
)

// testEnv is the cluster of the measurements.
type testEnv struct {
	client.Client

	cache    cache.Cache
	patience time.Duration
	// renewals counts the renewals of the leader election lease.
	renewals atomic.Int64
	podTimes podTimes
}

func open(ctx context.Context, patience time.Duration) (*testEnv, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), etcdv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	s := &testEnv{patience: patience}
	if s.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	s.cache, err = cache.New(config, cache.Options{
		Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}, operatorNamespace: {}},
	})
	if err != nil {
		return nil, err
	}
	go func() { _ = s.cache.Start(ctx) }()
	return s, errors.Join(s.watch(ctx), s.reset(ctx))
}

// watch starts the informers of all kinds in advance, so that the first read is not slower
// than the others.
func (s *testEnv) watch(ctx context.Context) error {
	for _, kind := range []client.Object{
		&etcdv1.EtcdCluster{}, &corev1.PersistentVolumeClaim{}, &discoveryv1.EndpointSlice{},
	} {
		if _, err := s.cache.GetInformer(ctx, kind); err != nil {
			return err
		}
	}
	return errors.Join(
		s.follow(ctx, &corev1.Pod{}, toolscache.ResourceEventHandlerFuncs{
			AddFunc: s.podTimes.note, UpdateFunc: func(_, after any) { s.podTimes.note(after) },
		}),
		s.follow(ctx, &coordinationv1.Lease{}, toolscache.ResourceEventHandlerFuncs{UpdateFunc: s.count}),
	)
}

func (s *testEnv) follow(ctx context.Context, kind client.Object, handle toolscache.ResourceEventHandler) error {
	informer, err := s.cache.GetInformer(ctx, kind)
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(handle)
	return err
}

func (s *testEnv) count(before, after any) {
	was, is := before.(*coordinationv1.Lease), after.(*coordinationv1.Lease)
	if is.Name == leaseName && !was.Spec.RenewTime.Equal(is.Spec.RenewTime) {
		s.renewals.Add(1)
	}
}

// reset starts with an empty namespace.
func (s *testEnv) reset(ctx context.Context) error {
	if err := s.close(ctx); err != nil {
		return err
	}
	return s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// close deletes everything, also after an interrupted run.
func (s *testEnv) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := s.Delete(ctx, ns); err != nil {
		return client.IgnoreNotFound(err)
	}
	return s.until(ctx, "the namespace "+namespace+" is gone", func(ctx context.Context) error {
		err := s.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("it still exists")
	})
}

// until waits until holds returns nil. The error of holds is the missing fact.
func (s *testEnv) until(ctx context.Context, what string, holds func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	began, reported := time.Now(), time.Now()
	for {
		missing := holds(ctx)
		if missing == nil {
			return nil
		}
		if time.Since(reported) > progressInterval {
			reported = time.Now()
			progress("  %3.0f s until %s: %v", time.Since(began).Seconds(), what, missing)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %s: %w", s.patience, what, errors.Join(missing, ctx.Err()))
		case <-again.C:
		}
	}
}
