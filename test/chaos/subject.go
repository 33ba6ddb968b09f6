package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	does "github.com/governor-dev/governor/kube/chaos"
)

// instanceName is the name of every EtcdCluster; each has a namespace of its own.
const instanceName = "etcd"

// layout is the kind of EtcdCluster in a round.
type layout struct {
	size int32
	tls  bool
}

func (l layout) String() string {
	if l.tls {
		return fmt.Sprintf("%d-tls", l.size)
	}
	return fmt.Sprintf("%d-plain", l.size)
}

func parseLayout(text string) (layout, error) {
	size, mode, _ := strings.Cut(text, "-")
	n, err := strconv.ParseInt(size, 10, 32)
	if err != nil || n < 1 || n > 9 || mode != "tls" && mode != "plain" {
		return layout{}, fmt.Errorf("-layout: %q is not such as 3-tls or 1-plain", text)
	}
	return layout{int32(n), mode == "tls"}, nil
}

// chosenLayout prefers layouts that tolerate a loss.
func chosenLayout(chance *rand.Rand) layout {
	return layout{size: []int32{1, 3, 3}[chance.IntN(3)], tls: chance.IntN(2) == 0}
}

// subject is the EtcdCluster of one round, and the oracle's knowledge about it.
type subject struct {
	*arena
	does.Instance
	layout layout

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
	s := &subject{arena: a, layout: l, Instance: does.Instance{
		Kind: etcdv1.GroupVersion.WithKind("EtcdCluster"), Key: client.ObjectKey{Namespace: ns.Name, Name: instanceName},
		OperatorNamespace: operatorSpace, Manager: "chaos",
	}}
	size := resource.MustParse("1Gi")
	obj := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: instanceName}}
	obj.Spec = etcdv1.EtcdClusterSpec{Size: l.size, Version: "3.6", Storage: etcdv1.StorageSpec{Size: &size}, TLS: etcdv1.TLSSpec{Mode: etcdv1.Disabled}}
	if l.tls {
		obj.Spec.TLS.Mode, obj.Spec.NetworkPolicy.Enabled = etcdv1.Managed, true
	}
	if disks {
		obj.Spec.Storage.StorageClassName, size = new(sizedClass), resource.MustParse("256Mi")
		if err := a.sized(ctx); err != nil {
			return s, err
		}
	}
	if err := a.api.Create(ctx, obj); err != nil {
		return s, err
	}
	return s, await(ctx, 2*time.Minute, 200*time.Millisecond, func(ctx context.Context) error { return s.converged(ctx) })
}

// remove deletes the namespace, and does not wait. The adversary's finalizers are already removed.
func (s *subject) remove(ctx context.Context) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Key.Namespace}}
	if err := s.api.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
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
