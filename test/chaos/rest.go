package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// restKinds are the kinds that the operator writes.
var restKinds = []chaos.Object{
	{Kind: "EtcdCluster", APIVersion: "etcd.database.coreos.com/v1", Scope: chaos.ScopeInstance, Custom: true},
	chaos.StatefulSet, chaos.PersistentVolumeClaim, chaos.Service, chaos.ConfigMap, chaos.Secret, chaos.PodDisruptionBudget,
	chaos.NetworkPolicy, chaos.ControllerRevision, chaos.Deployment,
}

// written is the version of one object at one time.
type written struct {
	version string
	by      string
}

// restWindows is the number of observations before the operator counts as not settled: it may still
// report effects of a restarted machine once.
const restWindows = 3

// rests returns an error if an object is written in every window although the cluster is settled.
func (s *subject) rests(ctx context.Context, how time.Duration) (err error) {
	for range restWindows {
		if err = s.restsFor(ctx, how); err == nil {
			return nil
		}
	}
	return err
}

func (s *subject) restsFor(ctx context.Context, how time.Duration) error {
	before, err := s.versions(ctx)
	if err != nil {
		return err
	}
	pause(ctx, how)
	after, err := s.versions(ctx)
	if err != nil {
		return err
	}
	var changed []string
	for name, now := range after {
		if then, was := before[name]; !was || then.version != now.version {
			changed = append(changed, fmt.Sprintf("%s (by %s)", name, now.by))
		}
	}
	for name := range before {
		if _, is := after[name]; !is {
			changed = append(changed, name+" (deleted)")
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return fmt.Errorf("written at rest within %s: %s", how, strings.Join(changed, ", "))
}

func (s *subject) versions(ctx context.Context) (map[string]written, error) {
	all := map[string]written{}
	for _, kind := range restKinds {
		if kind.Custom {
			kind.Kind, kind.APIVersion = s.Kind.Kind, s.Kind.GroupVersion().String()
		}
		found, err := s.Find(ctx, s.api, kind)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			all[kind.Kind+"/"+o.GetName()] = written{o.GetResourceVersion(), lastWriter(o)}
		}
	}
	return all, nil
}

func lastWriter(o unstructured.Unstructured) string {
	newest := slices.MaxFunc(append(o.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: "unknown", Time: &metav1.Time{}}), func(a, b metav1.ManagedFieldsEntry) int {
		return timeOf(a).Compare(timeOf(b))
	})
	return newest.Manager
}

func timeOf(e metav1.ManagedFieldsEntry) time.Time {
	if e.Time == nil {
		return time.Time{}
	}
	return e.Time.Time
}
