// Package engine has the only reconcile loop. Every application goes through the same stages:
//
//	are our own writes in the cache? → hold (a deletion) → claim (the finalizer) → observe →
//	pause → provide (the resources) → decide → judge (gates and policies) → act → finalize
//
// Afterwards one result is published: status, event, log, metrics, history, and the time of the
// next reconcile. All of them follow from the Decision.
//
// One line runs an application:
//
//	operator, err := engine.New(mgr, engine.Options{})
//	...
//	err = engine.Register(operator, engine.App[*v1.Ring, ring.World]{
//		Name: "ring", Planner: ring.Planner{}, Driver: driver.New, Owns: ...,
//	})
//
// An application whose CRD is missing starts when the CRD appears, and stops when the CRD is
// removed. Other applications are not affected.
package engine

import (
	"cmp"
	"fmt"
	"reflect"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/engine/internal/crd"
	"github.com/governor-dev/governor/engine/internal/enforce"
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
	kinds    *crd.Watcher
	policies *enforce.Store
	// advice and previews are nil without webhooks.
	advice, previews *router
	// running are the applications, which end when all their steps have.
	running sync.WaitGroup
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
		op.advice, op.previews = newRouter(mgr, AdvicePath), newRouter(mgr, PreviewPath)
	}
	return op, nil
}

// App registers one application: a kind, its planner and its driver.
type App[T lifecycle.Resource, W any] struct {
	// Name is the name of the application, e.g. memcached: a label value, unique in the
	// operator.
	Name string

	// Planner decides. It is pure.
	Planner lifecycle.Planner[T, W]

	// Driver returns the driver, which observes and acts. The cached client reads from the cache
	// of this application, records what it writes and labels what it creates. live reads from
	// the API server what is not in that cache.
	Driver func(cached client.Client, live client.Reader) lifecycle.Driver[T, W]

	// Abilities are what the application can do beyond its planner.
	Abilities lifecycle.Abilities[T, W]

	// Gates are the promises that every step must keep.
	Gates []lifecycle.Gate[T, W]

	// Owns are the kinds that Resources may return. The engine prunes and repairs them. A kind is
	// a namespaced Go type of the scheme: a built-in kind, or a custom resource whose
	// CustomResourceDefinition is installed and has a structural schema.
	Owns []client.Object

	// Watches are further kinds that belong to an object by label, such as Pods. The driver can
	// read them from the cache, also by owner with apply.OwnerIndex, and their changes reconcile
	// the object. The cache keeps the node of a Pod, and the names and images of its containers,
	// but not the rest of its spec.
	Watches []client.Object

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

	// Workers is how many objects the engine reconciles at the same time; zero means 8.
	Workers int
}

// Register runs the application under the operator, as soon as its CRD exists.
func Register[T lifecycle.Resource, W any](op *Operator, app App[T, W]) error {
	if app.Workers <= 0 {
		app.Workers = 8
	}
	s := &supervisor[T, W]{operator: op, app: app, ahead: &forecaster[T, W]{}}
	if err := op.mgr.Add(s); err != nil {
		return fmt.Errorf("cannot register the application %s: %w", app.Name, err)
	}
	return registerWebhooks(op, app, s.ahead)
}

// newObject returns a new object of the application's kind.
func (a App[T, W]) newObject() T {
	var t T
	return reflect.New(reflect.TypeOf(t).Elem()).Interface().(T)
}
