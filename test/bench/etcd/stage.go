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
	// namespace is where everything is measured; it is deleted afterwards.
	namespace = "governor-bench"
	// home is where the operator is installed.
	home = "governor-system"

	// look is how often the world is looked at while something is waited for: what
	// a measured time can be wrong by.
	look = 25 * time.Millisecond
	// tell is how often a wait says that it still waits.
	tell = 5 * time.Second
)

// stage is the cluster on which everything is measured.
type stage struct {
	client.Client

	cache    cache.Cache
	patience time.Duration
	// renewals of the lease that the operator's leader has written so far.
	renewals atomic.Int64
	births   births
}

func open(ctx context.Context, patience time.Duration) (*stage, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), etcdv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	s := &stage{patience: patience}
	if s.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	s.cache, err = cache.New(config, cache.Options{
		Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}, home: {}},
	})
	if err != nil {
		return nil, err
	}
	go func() { _ = s.cache.Start(ctx) }()
	return s, errors.Join(s.watch(ctx), s.renew(ctx))
}

// watch fills the cache with all that will be asked for, so that the first question
// is not slower than the others.
func (s *stage) watch(ctx context.Context) error {
	for _, kind := range []client.Object{
		&etcdv1.EtcdCluster{}, &corev1.PersistentVolumeClaim{}, &discoveryv1.EndpointSlice{},
	} {
		if _, err := s.cache.GetInformer(ctx, kind); err != nil {
			return err
		}
	}
	return errors.Join(
		s.follow(ctx, &corev1.Pod{}, toolscache.ResourceEventHandlerFuncs{
			AddFunc: s.births.note, UpdateFunc: func(_, after any) { s.births.note(after) },
		}),
		s.follow(ctx, &coordinationv1.Lease{}, toolscache.ResourceEventHandlerFuncs{UpdateFunc: s.count}),
	)
}

func (s *stage) follow(ctx context.Context, kind client.Object, handle toolscache.ResourceEventHandler) error {
	informer, err := s.cache.GetInformer(ctx, kind)
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(handle)
	return err
}

func (s *stage) count(before, after any) {
	was, is := before.(*coordinationv1.Lease), after.(*coordinationv1.Lease)
	if is.Name == leaseName && !was.Spec.RenewTime.Equal(is.Spec.RenewTime) {
		s.renewals.Add(1)
	}
}

// renew begins with an empty namespace.
func (s *stage) renew(ctx context.Context) error {
	if err := s.close(ctx); err != nil {
		return err
	}
	return s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// close leaves nothing behind, also when the run was interrupted.
func (s *stage) close(ctx context.Context) error {
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
		return errors.New("it is still there")
	})
}

// until waits until what holds. The error of holds is what lacks.
func (s *stage) until(ctx context.Context, what string, holds func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	again := time.NewTicker(look)
	defer again.Stop()
	began, told := time.Now(), time.Now()
	for {
		lacks := holds(ctx)
		if lacks == nil {
			return nil
		}
		if time.Since(told) > tell {
			told = time.Now()
			progress("  %3.0f s until %s: %v", time.Since(began).Seconds(), what, lacks)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %s: %w", s.patience, what, errors.Join(lacks, ctx.Err()))
		case <-again.C:
		}
	}
}
