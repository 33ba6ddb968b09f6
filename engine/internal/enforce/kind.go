package enforce

import (
	"context"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// Kind has the policies and approvals of the objects of one kind.
type Kind struct {
	GVK   schema.GroupVersionKind
	Store *Store
	// Client writes the status of approvals, and Live reads what the cache does not keep.
	Client client.Client
	Live   client.Reader
	Now    func() time.Time
}

// Effective returns what all policies that select the object say together.
func (k *Kind) Effective(obj client.Object) policy.Effective { return k.Selecting(obj).Effective() }

// Selecting returns the policies that select the object.
func (k *Kind) Selecting(obj client.Object) policy.Set { return k.Store.Selecting(k.Subject(obj)) }

// Subject is the object as policies see it.
func (k *Kind) Subject(obj client.Object) policy.Object {
	return policy.Object{
		Group: k.GVK.Group, Kind: k.GVK.Kind,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), Labels: obj.GetLabels(),
		NamespaceLabels: k.Store.NamespaceLabels(obj.GetNamespace()),
	}
}

// Peer is what others must know of the object.
func (k *Kind) Peer(obj lifecycle.Resource) policy.Peer {
	p := policy.Peer{Object: k.Subject(obj)}
	observed, conditions := obj.StatusFields()
	if c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionReady); c != nil {
		p.Since = c.LastTransitionTime.Time
		held := apimeta.IsStatusConditionTrue(*conditions, lifecycle.ConditionChangeHeld)
		p.Settled = c.Status == metav1.ConditionTrue && !held && *observed == obj.GetGeneration()
	}
	if c := apimeta.FindStatusCondition(*conditions, lifecycle.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		p.Stalled = c.Reason
	}
	return p
}

// RollsBack are the policies that put the last spec that worked back when one of the
// object has failed; none if it halts.
func (k *Kind) RollsBack(obj client.Object) []string {
	if p := k.Effective(obj); p.OnFailure == v1alpha1.FailurePolicyRollback {
		return p.OnFailureBy
	}
	return nil
}

// Maintained is the context for the driver: it knows the nodes that policies of the
// object name as being in maintenance.
func (k *Kind) Maintained(ctx context.Context, obj client.Object) context.Context {
	return lifecycle.WithMaintenance(ctx, k.Selecting(obj).Maintenance())
}

// ReportsDrift reports whether a policy leaves what others change of the object.
func (k *Kind) ReportsDrift(obj client.Object) bool {
	return k.Effective(obj).Drift == v1alpha1.DriftPolicyReport
}
