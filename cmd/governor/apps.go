package main

import (
	"errors"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/apps/etcd"
	etcddriver "github.com/governor-dev/governor/apps/etcd/driver"
	"github.com/governor-dev/governor/apps/etcd/legacy"
	"github.com/governor-dev/governor/apps/memcached"
	memcacheddriver "github.com/governor-dev/governor/apps/memcached/driver"
	"github.com/governor-dev/governor/apps/podset"
	podsetdriver "github.com/governor-dev/governor/apps/podset/driver"
	"github.com/governor-dev/governor/engine"
)

// apis are the API groups of the applications, and of those who say what may be done to them.
func apis() []func(*runtime.Scheme) error {
	return []func(*runtime.Scheme) error{appv1.AddToScheme, cachev1.AddToScheme, etcdv1.AddToScheme, v1beta2.AddToScheme, v1alpha1.AddToScheme}
}

// What the operator may do, and nothing else. Why it may read and write Secrets, and
// how to narrow that, is in docs/adr/0008-secrets-everywhere.md.
//
// Of its own:
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=etcdclusters.etcd.database.coreos.com,verbs=patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,resourceNames=governor,verbs=list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=governor-system
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=governor-webhook-certificate,verbs=get;list;watch;create;patch,namespace=governor-system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=governor-system
//
// To ask who reads its metrics:
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
//
// What people own:
// +kubebuilder:rbac:groups=governor.dev,resources=operationpolicies;approvals,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=governor.dev,resources=operationpolicies,verbs=bypass
// +kubebuilder:rbac:groups=governor.dev,resources=operationpolicies/status;approvals/status,verbs=update
//
// For every application:
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=list;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
//
// For memcached:
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=update
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
//
// For pod sets, which adopt and release pods:
// +kubebuilder:rbac:groups=app.example.com,resources=podsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=app.example.com,resources=podsets/status,verbs=update
// +kubebuilder:rbac:groups=app.example.com,resources=podsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
//
// For etcd, which evicts and deletes pods to restart members, and creates the next pod in a dry run before:
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdclusters/status,verbs=update
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get

// register adds every application to the operator, one line each.
func register(op *engine.Operator) error {
	return errors.Join(registerMemcached(op), registerPodSets(op), registerEtcd(op))
}

// namespace is the one of the operator's own pod; empty if it runs in none.
func namespace() string {
	raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

func registerEtcd(op *engine.Operator) error {
	return engine.Register(op, engine.App[*etcdv1.EtcdCluster, etcd.World]{
		Name: etcd.Name, Planner: etcd.Planner{Operator: namespace()}, Steps: etcd.Steps(), Abilities: etcd.Abilities(), Driver: etcddriver.New, Gates: etcd.Gates(),
		Holdable: true, TryTemplate: etcddriver.TryTemplate,
		Owns: []client.Object{
			&corev1.Service{}, &corev1.ConfigMap{}, &corev1.Secret{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{},
		},
		Watches:        []engine.Watch{{Object: &appsv1.StatefulSet{}}, {Object: &corev1.PersistentVolumeClaim{}}, {Object: &corev1.Pod{}}},
		FormerVersions: []engine.FormerVersion{engine.ConvertFormer(v1beta2.GroupVersion.WithKind("EtcdCluster"), legacy.ToV1)},
	})
}

func registerMemcached(op *engine.Operator) error {
	return engine.Register(op, engine.App[*cachev1.Memcached, memcached.World]{
		Name: memcached.Name, Planner: memcached.Planner{}, Steps: memcached.Steps(), Abilities: memcached.Abilities(), Driver: memcacheddriver.New,
		Owns:    []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}},
		Watches: []engine.Watch{{Object: &corev1.Pod{}}}, StatusDelay: tellWithin,
	})
}

const (
	// tellWithin is for hundreds of caches at once: no user reads each within a second. The
	// one thing that a status remembers, the image of a spec without one, this operator
	// would choose again.
	tellWithin = time.Second
	// gather is for how long news of a set's pods are gathered: a set of hundreds would
	// otherwise take a turn for each of them.
	gather = 100 * time.Millisecond
	// recount is how often the numbers of a set are reported while its pods start: to report 500
	// names costs the API server as much as to make four pods.
	recount = time.Second
)

func registerPodSets(op *engine.Operator) error {
	return engine.Register(op, engine.App[*appv1.PodSet, podset.World]{
		Name: podset.Name, Planner: podset.Planner{}, Steps: podset.Steps(), Abilities: podset.Abilities(), Driver: podsetdriver.New, Gates: podset.Gates(),
		TryTemplate: podsetdriver.TryTemplate,
		Watches:     []engine.Watch{{Object: &corev1.Pod{}}}, Debounce: gather, StatusInterval: recount,
	})
}
