// Package engine has the only reconcile loop. It runs every application through
// the same turn:
//
//	caught up with our own writes? → hold (deletion) → claim (finalizer) → observe →
//	provide resources → Next → gates on the world during the step → act → tell
//
// Tell is the one place where status, events, history, metrics and the time of the
// next turn come from, and all of them come from the Decision.
//
// One line runs an application:
//
//	operator, err := engine.New(mgr, engine.Options{})
//	...
//	err = engine.Register(operator, engine.App[*v1.Ring, ring.World]{
//		Name: "ring", Planner: ring.Planner{}, Driver: driver.New, Owns: ...,
//	})
//
// An application whose CRD is missing sleeps until the CRD appears, and goes back
// to sleep when the CRD is removed. The others do not notice.
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
	// Name of the operator, as events tell it; empty means governor.
	Name string

	// Namespaces to watch; empty means all.
	Namespaces []string

	// Budget is how many objects of the fleet may be under a disruptive step at
	// the same time; zero means DefaultBudget. Repairs are not counted.
	Budget int

	// Version of the operator, for the history.
	Version string

	// Webhooks serves every application's warnings, see lifecycle.Abilities, and previews
	// on the manager's webhook server.
	Webhooks bool

	// PolicyStatus writes the status of policies. All operators of a cluster follow
	// them, if their scheme knows the kinds; the status has one writer.
	PolicyStatus bool

	// MayAct reports whether this process still leads. It is asked before each stage of a reconciliation: a process that
	// was suspended may have lost its lease without knowing it. Nil means always.
	MayAct func() bool

	// Now is the clock; nil means the real one.
	Now func() time.Time
}

// DefaultBudget is the fleet's pacing budget unless Options say otherwise.
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

// App is one application: a kind, its judgement and its contact with the world.
type App[T lifecycle.Resource, W any] struct {
	// Name is the application's name, e.g. memcached: a label value, unique in the
	// operator.
	Name string

	// Planner decides.
	Planner lifecycle.Planner[T, W]

	// Driver returns what observes and acts. The client reads from the cache of
	// this application, remembers what it writes and labels what it creates; live
	// reads from the API server what is not in that cache.
	Driver func(cached client.Client, live client.Reader) lifecycle.Driver[T, W]

	// Abilities are what the application can do beyond its planner.
	Abilities lifecycle.Abilities[T, W]

	// Gates are the promises that every step has to keep.
	Gates []lifecycle.Gate[W]

	// Owns are the kinds that Resources may return. They are pruned and repaired. A kind is
	// a Go type of the scheme with a namespace: built in, or a custom resource whose
	// CustomResourceDefinition is installed and has a structural schema.
	Owns []client.Object

	// Watches are further kinds that belong to an object by label, such as Pods:
	// they can be read from the cache, also by owner with apply.OwnerIndex, and wake
	// the object. Of the specification of a Pod the cache keeps the node and the names
	// and images of the containers.
	Watches []client.Object

	// FormerVersions are earlier versions of the kind in which users may ask for a preview.
	FormerVersions []FormerVersion

	// Gather is for how long news about what belongs to an object are gathered before
	// its turn; zero means not at all. With hundreds of pods that start at the same
	// time each would make a turn of its own. What the user declares is never delayed.
	Gather time.Duration

	// Recount is how often, at most, a status is written that tells only other numbers
	// or names, while the object waits for what it waited for before; zero means at
	// every change. To write hundreds of names costs the API server as much as to make
	// some pods. Other conditions, and the end of the wait, are told at once.
	Recount time.Duration

	// TellWithin is how long it may stay untold, by status and event, what an object has
	// begun to wait for while more objects wait for their turn than can have it next: to
	// write a status costs the API server twice as much as to make an object, and by the
	// time that the others have had theirs most waits are over. Zero means at once, as
	// it must be where the status is more than a report, such as what the planner has to
	// remember. Steps, trouble, gates that hold, and the end of the wait are told at once.
	TellWithin time.Duration

	// Finalize says that deletion needs steps: the object gets a finalizer, and
	// Next is asked with a deletion timestamp until it is settled. Without it,
	// owner references let Kubernetes clear up.
	Finalize bool

	// Holdable says that policies can hold the deletion of an object as a whole. Next is
	// asked with a deletion timestamp for the one step that the deletion is, and Act
	// prepares it; Kubernetes' garbage collection does the rest. The object has a
	// finalizer only while a policy selects it that can hold its deletion. While one does,
	// turns go on as if the object were not being deleted.
	Holdable bool

	// Workers is how many objects take their turns at the same time; zero means 8.
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
