package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// testEnv is a namespace with a fake Deployment controller and fake kubelets. A Deployment
// has its ready pods as soon as the API server has served three requests. It is the same
// for the operator and for the plain calls.
type testEnv struct {
	api       *api
	namespace string
	cache     cache.Cache
	done      chan error
	cancel    context.CancelFunc
}

func openEnv(ctx context.Context, api *api, namespace string) (*testEnv, error) {
	if err := api.newNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(api.config, manager.Options{
		Scheme:  api.Scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return nil, err
	}
	s := &testEnv{api: api, namespace: namespace, cache: mgr.GetCache(), done: make(chan error, 1)}
	if err := s.startControllers(mgr); err != nil {
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	go func() { s.done <- mgr.Start(ctx) }()
	if !s.cache.WaitForCacheSync(ctx) {
		return nil, errors.Join(errors.New("the cache does not sync"), s.close())
	}
	return s, nil
}

// close stops the fake controllers. It keeps the objects.
func (s *testEnv) close() error {
	s.cancel()
	return <-s.done
}

func (s *testEnv) startControllers(mgr manager.Manager) error {
	again := true
	return builder.ControllerManagedBy(mgr).Named("kubernetes").For(&appsv1.Deployment{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: &again}).
		Complete(reconcile.Func(s.reconcile))
}

// reconcile creates the pods of one Deployment and updates its status.
func (s *testEnv) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	dep := &appsv1.Deployment{}
	if err := s.cache.Get(ctx, req.NamespacedName, dep); err != nil || rolledOut(dep) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	for i := dep.Status.Replicas; i < *dep.Spec.Replicas; i++ {
		if err := s.runPod(ctx, dep, i); err != nil {
			return reconcile.Result{}, err
		}
	}
	n := *dep.Spec.Replicas
	base := dep.DeepCopy()
	dep.Status = appsv1.DeploymentStatus{
		ObservedGeneration: dep.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}
	return reconcile.Result{}, client.IgnoreNotFound(s.api.Status().Patch(ctx, dep, client.MergeFrom(base)))
}

func (s *testEnv) runPod(ctx context.Context, dep *appsv1.Deployment, i int32) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: dep.Namespace, Name: fmt.Sprintf("%s-%d", dep.Name, i), Labels: dep.Spec.Template.Labels,
		},
		Spec: dep.Spec.Template.Spec,
	}
	if err := s.api.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.ResourceVersion = ""
	return s.api.Status().Update(ctx, pod)
}

// rolledOut reports whether the Deployment has all its pods.
func rolledOut(obj client.Object) bool {
	dep := obj.(*appsv1.Deployment)
	return dep.Status.ObservedGeneration == dep.Generation && dep.Status.ReadyReplicas == *dep.Spec.Replicas
}
