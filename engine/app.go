// Package engine has the only reconcile loop. Every application goes through the same stages:
//
//	are our own writes in the cache? → hold (a deletion) → claim (the finalizer) → observe →
//	pause → provide (the resources) → decide → judge (gates and policies) → act → finalize
//
// Afterwards one result is published: status, event, log, metrics, history, and the time of the
// next reconcile. All of them follow from the Decision.
//
// Each stage is a file of its name. What the stages ask are packages under internal:
//
//	hold          is a step held by gates or policies, and what is done instead
//	specchange    does a step carry out a change of the spec, or restore the world
//	enforce       what policies and approvals say of an object
//	budget        may another object be disrupted now
//	rollback      how to return to the spec that worked last
//	publish       what a result means for status, event, log, history and the next reconcile
//	explain       which decision an error is
//	historystore  what was done to an object before
//	metrics       the counters and gauges
//	forecast      what will happen to an object: previews and warnings
//	admission     the webhooks that serve them
//	wake          which object a change of another one reconciles
//	memory        what is remembered of an object until the operator ends
//	caching, crd, kindcache: what the caches keep, and which kinds exist
//
// One line runs an application:
//
//	operator, err := engine.New(mgr, engine.Options{})
//	...
//	err = engine.Register(operator, engine.App[*v1.Ring, ring.World]{
//		Name: "ring", Planner: ring.Planner{}, Steps: ring.Steps(), Driver: driver.New, Owns: ...,
//	})
//
// An application whose CRD is missing starts when the CRD appears, and stops when the CRD is
// removed. Other applications are not affected.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/engine/internal/admission"
	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/engine/internal/crd"
	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/engine/internal/kindcache"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
)

// Options are what all applications of one operator share.
type Options struct {
	// Name is the name of the operator in events; empty means governor.
	Name string

	// Namespaces are the namespaces to watch; empty means all.
	Namespaces []string

	// Budget is the number of objects that may be under a disruptive step at the same time;
	// zero means DefaultBudget. Repairs do not count.
	Budget int

	// Version of the operator, for the history.
	Version string

	// Webhooks serves the warnings of every application, see lifecycle.Abilities, and previews on
	// the webhook server of the manager.
	Webhooks bool

	// PolicyStatus makes this operator write the status of policies. All operators of a cluster
	// follow policies, if their scheme has the kinds; only one writes the status.
	PolicyStatus bool

	// MayAct reports whether this process still leads. The engine asks before each stage of a
	// reconcile: a process that was suspended may have lost its lease without noticing. Nil
	// means always.
	MayAct func() bool

	// Now is the clock; nil means the real one.
	Now func() time.Time
}

// DefaultBudget is the budget unless Options set one.
const DefaultBudget = 5

// Operator is what the applications of one process share.
type Operator struct {
	mgr      manager.Manager
	options  Options
	budget   *budget.Budget
	kinds    kindcache.Kinds
	policies *enforce.Store
	// advice and previews are nil without webhooks.
	advice, previews *admission.Router
	// running are the applications, which end when all their steps have.
	running    sync.WaitGroup
	registered registry
}

// Wait returns when no application runs any more. The manager's Start returns before that if it lost its lease.
func (op *Operator) Wait() { op.running.Wait() }

func (op *Operator) mayAct() bool { return op.options.MayAct == nil || op.options.MayAct() }

// New returns an operator without applications. The manager's scheme must know
// the kinds of every application and their children.
func New(mgr manager.Manager, o Options) (*Operator, error) {
	if o.Budget <= 0 {
		o.Budget = DefaultBudget
	}
	o.Name = cmp.Or(o.Name, "governor")
	if o.Now == nil {
		o.Now = time.Now
	}
	kinds := crd.NewWatcher(mgr)
	if err := mgr.Add(kinds); err != nil {
		return nil, fmt.Errorf("cannot watch custom resource definitions: %w", err)
	}
	rules, err := enforce.Watch(mgr, kinds, o.namespaces(), o.PolicyStatus, o.Now)
	if err != nil {
		return nil, fmt.Errorf("cannot watch policies: %w", err)
	}
	op := &Operator{mgr: mgr, options: o, budget: budget.New(o.Budget, o.Now), kinds: kinds, policies: rules}
	if o.Webhooks {
		op.advice, op.previews = admission.NewRouter(mgr, AdvicePath), admission.NewRouter(mgr, PreviewPath)
	}
	return op, nil
}

// App registers one application: a kind, its planner and its driver. Several kinds that belong
// together, such as a cluster and its backups, are one App each; their drivers may share values.
type App[T lifecycle.Resource, W any] struct {
	// Name is the name of the application, e.g. memcached: a label value, unique in the
	// operator. Everything that belongs to its objects has it as lifecycle.LabelApp, so an
	// object of the same name of another kind has other belongings.
	Name string

	// Planner decides. It is pure.
	Planner lifecycle.Planner[T, W]

	// Steps are all steps and waits that the planner may decide on. The engine is blocked on any
	// other one, and on arguments that are not as declared.
	Steps []lifecycle.StepType

	// Driver returns the driver, which observes and acts.
	Driver func(kube.Access) lifecycle.Driver[T, W]

	// TryTemplate returns seen with the API server's answer to a dry run of the pods of want, as the
	// driver's Observe adds it for the object that it observes. A preview calls it, because its
	// world was observed for the object before the change. Nil means that a preview does not ask.
	TryTemplate func(ctx context.Context, c client.Client, want T, seen W) W

	// New returns an empty object of the kind. Only a kind without a Go type needs it, see
	// dynamic.New of package lifecycle/dynamic; nil means an empty T.
	New func() T

	// Abilities are what the application can do beyond its planner.
	Abilities lifecycle.Abilities[T, W]

	// Gates are the promises that every step must keep.
	Gates []lifecycle.Gate[T, W]

	// Owns are the kinds that Resources may return. The engine prunes and repairs them. A kind is
	// namespaced: a Go type of the scheme, or an unstructured object that says its kind. The
	// CustomResourceDefinition of a custom resource must be installed and have a structural schema.
	Owns []client.Object

	// Watches are further kinds that the driver reads from the cache, also by owner with
	// apply.OwnerIndex, such as Pods. Their changes reconcile the custom resource that they belong to.
	Watches []Watch

	// FormerVersions are earlier versions of the kind for which users may ask for a preview.
	FormerVersions []FormerVersion

	// Debounce delays the reconcile after changes of objects that belong to a custom resource, so
	// that one reconcile covers many of them; zero means no delay. Without it, each of hundreds of
	// pods that start together would cause a reconcile. Changes of the custom resource itself are
	// never delayed.
	Debounce time.Duration

	// StatusInterval is the shortest interval between two writes of a status in which only numbers
	// or names changed, while the object waits for the same as before; zero means no limit.
	// Hundreds of names cost the API server as much as the creation of some pods. A changed
	// condition, and the end of the wait, are written at once.
	StatusInterval time.Duration

	// StatusDelay is how long the status and event of a new wait may be delayed while the queue is
	// longer than the number of workers. A status write costs the API server twice as much as the
	// creation of an object, and most waits end before the queue is empty. Zero means no delay,
	// which is required if the planner reads its own status. Steps, problems, gates that hold, and
	// the end of the wait are published at once.
	StatusDelay time.Duration

	// Finalize says that a deletion needs steps. The object gets a finalizer, and the engine asks
	// Next for steps until it returns Settled. Without it, Kubernetes' garbage collection deletes
	// what has an owner reference.
	Finalize bool

	// Holdable says that policies can hold the deletion of an object as a whole. The engine asks
	// Next for the one step that stands for the deletion, and Act prepares it; Kubernetes' garbage
	// collection does the rest. The object has a finalizer only while a policy selects it that can
	// hold its deletion. While a policy holds it, the engine reconciles the object as if it were
	// not being deleted.
	Holdable bool

	// Timeout limits each Observe and each Act; zero means 30 seconds. After it, the operator does
	// not know the application, or does not know whether the step took effect: it changes nothing
	// until it has observed the application again. A driver must return when its context ends.
	Timeout time.Duration

	// Workers is how many objects the engine reconciles at the same time; zero means 8.
	Workers int
}
