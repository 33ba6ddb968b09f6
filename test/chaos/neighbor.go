package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// neighborName begins as the names of the instance's own members do.
const neighborName = instanceName + "-1"

// neighborKinds are the objects of the neighbor that must stay as they are. Its pods may be evicted with
// those of their node.
var neighborKinds = []chaos.Object{chaos.StatefulSet, chaos.PersistentVolumeClaim, chaos.Service, chaos.ConfigMap, chaos.PodDisruptionBudget}

// placeNeighbor creates another EtcdCluster with a similar name. Its pods have the label of a bystander.
func (s *subject) placeNeighbor(ctx context.Context) error {
	if !s.layout.has(neighbor) {
		return nil
	}
	obj := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Key.Namespace, Name: neighborName}}
	obj.Spec = layout{size: 1, features: []string{plain}}.spec()
	obj.Spec.Pod.Labels = map[string]string{does.Bystander: "true"}
	return s.api.Create(ctx, obj, client.FieldOwner(s.Manager))
}

func (s *subject) neighbor() does.Instance {
	n := s.Instance
	n.Key.Name = neighborName
	return n
}

// neighborObjects waits until the neighbor serves, and returns its objects as they then are.
func (s *subject) neighborObjects(ctx context.Context) ([]bystander, error) {
	if !s.layout.has(neighbor) {
		return nil, nil
	}
	serves := func(ctx context.Context) error {
		obj := &etcdv1.EtcdCluster{}
		if err := s.api.Get(ctx, s.neighbor().Key, obj); err != nil {
			return err
		}
		return s.says(obj)
	}
	if err := await(ctx, 2*time.Minute, time.Second, serves); err != nil {
		return nil, fmt.Errorf("the neighbor: %w", err)
	}
	var all []bystander
	var failed error
	for _, kind := range neighborKinds {
		found, err := s.neighbor().Find(ctx, s.api, kind)
		failed = errors.Join(failed, err)
		for i := range found {
			if !strings.HasSuffix(found[i].GetName(), "-history") { // its operator may act
				all = append(all, seenAs(&found[i]))
			}
		}
	}
	return all, failed
}

func seenAs(o *unstructured.Unstructured) bystander {
	return bystander{o.GroupVersionKind(), client.ObjectKeyFromObject(o), o.GetUID(), content(o)}
}
