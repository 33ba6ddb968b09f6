package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
)

// claimsHeld checks that the volume of every pod has the declared size and is not being deleted. Members
// in memory have no volumes.
func (s *subject) claimsHeld(ctx context.Context, obj *etcdv1.EtcdCluster) error {
	if etcd.Volatile(obj) {
		return nil
	}
	for _, p := range s.members(ctx) {
		var claim corev1.PersistentVolumeClaim
		if err := s.api.Get(ctx, inNamespace(s, claimOf(p)), &claim); err != nil {
			return fmt.Errorf("the volume of %s: %w", p.Name, err)
		}
		if claim.DeletionTimestamp != nil {
			return fmt.Errorf("the volume of %s is being deleted", p.Name)
		}
		if claim.Spec.Resources.Requests.Storage().Cmp(*obj.Spec.Storage.Size) < 0 {
			return fmt.Errorf("the volume of %s has %s", p.Name, claim.Spec.Resources.Requests.Storage())
		}
	}
	return nil
}

// budgetHeld checks how many members Kubernetes permits a drain to evict: never the quorum.
func (s *subject) budgetHeld(ctx context.Context, obj *etcdv1.EtcdCluster) error {
	var budget policyv1.PodDisruptionBudget
	if err := s.api.Get(ctx, inNamespace(s, instanceName), &budget); err != nil {
		return fmt.Errorf("nothing protects the members from drains: %w", err)
	}
	most := obj.Spec.Size - (obj.Spec.Size/2 + 1)
	if now := budget.Status.DisruptionsAllowed; budget.Status.ObservedGeneration != budget.Generation || obj.Spec.Size > 2 && now > most {
		return fmt.Errorf("a drain may take %d members of %d: %w", now, obj.Spec.Size, errNotYet)
	}
	return nil
}

// kept checks the other objects of the cluster.
func (s *subject) kept(ctx context.Context, obj *etcdv1.EtcdCluster) error {
	return errors.Join(s.claimsHeld(ctx, obj), s.budgetHeld(ctx, obj))
}
