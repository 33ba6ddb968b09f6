package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	does "github.com/governor-dev/governor/kube/chaos"
)

// instanceName is the name of every instance; each has a namespace of its own.
const instanceName = "etcd"

// Sizes of the volumes: usual ones, and those that are file systems of their own.
var storageSize, diskSize = resource.MustParse("1Gi"), resource.MustParse("256Mi")

// subject is the EtcdCluster of one round, and the oracle's knowledge about it.
type subject struct {
	*arena
	does.Instance
	layout layout
	disks  bool // its volumes are file systems of their own

	mu   sync.Mutex
	keys *corev1.Secret // the last complete client Secret
	pods []corev1.Pod   // as last observed
}

// create creates the namespace and the EtcdCluster, and waits until it serves.
func (a *arena) create(ctx context.Context, l layout, disks bool) (*subject, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chaos-"}}
	if err := a.api.Create(ctx, ns); err != nil {
		return nil, err
	}
	s := &subject{arena: a, layout: l, disks: disks, Instance: l.instance(ns.Name)}
	if err := errors.Join(s.prepare(ctx), s.declare(ctx)); err != nil {
		return s, err
	}
	return s, await(ctx, 2*time.Minute+time.Duration(l.size)*10*time.Second, 200*time.Millisecond, s.converged)
}

// prepare creates what the instance needs.
func (s *subject) prepare(ctx context.Context) error {
	if s.disks {
		if err := s.sized(ctx); err != nil {
			return err
		}
	}
	if s.layout.has(ownTLS) {
		return s.giveCertificates(ctx)
	}
	return nil
}

// instance is the custom resource of the layout in the namespace.
func (l layout) instance(namespace string) does.Instance {
	kind := etcdv1.GroupVersion.WithKind("EtcdCluster")
	if app, ok := l.application(); ok {
		kind = app.kind
	}
	return does.Instance{
		Kind: kind, Key: client.ObjectKey{Namespace: namespace, Name: instanceName}, OperatorNamespace: operatorSpace, Manager: "chaos", Clock: time.Now,
	}
}

// declare creates the custom resource.
func (s *subject) declare(ctx context.Context) error {
	if app, ok := s.layout.application(); ok {
		return s.declareStateless(ctx, app)
	}
	if s.layout.has(legacy) {
		return s.api.Create(ctx, s.legacyObject(), client.FieldOwner(s.Manager))
	}
	obj := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Key.Namespace, Name: s.Key.Name}, Spec: s.layout.spec()}
	if s.disks {
		obj.Spec.Storage.StorageClassName, obj.Spec.Storage.Size = new(sizedClass), new(diskSize.DeepCopy())
	}
	return s.api.Create(ctx, obj, client.FieldOwner(s.Manager))
}

// legacyObject is the instance as a client of v1beta2 creates it.
func (s *subject) legacyObject() *unstructured.Unstructured {
	spec := map[string]any{"size": int64(s.layout.size), "version": "3.6"}
	if !s.layout.volatile() {
		size, claim := storageSize, map[string]any{"accessModes": []any{"ReadWriteOnce"}}
		if s.disks {
			size, claim["storageClassName"] = diskSize, sizedClass
		}
		claim["resources"] = map[string]any{"requests": map[string]any{"storage": size.String()}}
		spec["pod"] = map[string]any{"persistentVolumeClaimSpec": claim}
	}
	if s.layout.has(ownTLS) {
		spec["TLS"] = map[string]any{"static": map[string]any{
			"member": map[string]any{"peerSecret": ownPeer, "serverSecret": ownServer}, "operatorSecret": ownClient,
		}}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(etcdv1.GroupVersion.Group + "/v1beta2")
	o.SetKind(s.Kind.Kind)
	o.SetNamespace(s.Key.Namespace)
	o.SetName(s.Key.Name)
	return o
}

// remove deletes the namespace, and does not wait. The adversary's finalizers are already removed.
func (s *subject) remove(ctx context.Context) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Key.Namespace}}
	if err := errors.Join(s.removePolicy(ctx), client.IgnoreNotFound(s.api.Delete(ctx, ns))); err != nil {
		s.say("cannot delete the namespace %s: %v", s.Key.Namespace, err)
	}
}

func (s *subject) object(ctx context.Context) (*etcdv1.EtcdCluster, error) {
	obj := &etcdv1.EtcdCluster{}
	return obj, s.api.Get(ctx, s.Key, obj)
}

// members are the pods of the instance, by their names and not by their labels, which may have been
// removed. While the API server is down these are the last known pods.
func (s *subject) members(ctx context.Context) []corev1.Pod {
	var pods corev1.PodList
	err := s.api.List(ctx, &pods, client.InNamespace(s.Key.Namespace))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return s.pods
	}
	s.pods = nil
	for _, p := range pods.Items {
		if p.Labels[does.Bystander] == "" && strings.HasPrefix(p.Name, instanceName+"-") {
			s.pods = append(s.pods, p)
		}
	}
	return s.pods
}
