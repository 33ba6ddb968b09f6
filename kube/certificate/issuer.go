package certificate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// Finder finds the existing object of a wanted one, see [apply.Applier.Find].
type Finder interface {
	Find(ctx context.Context, owner client.Object, wanted lifecycle.Object) (client.Object, error)
}

// Issuer fills in the Secrets of all objects of one application. It is safe for
// concurrent use for different owners.
type Issuer struct {
	finder Finder
	now    func() time.Time
	cache  planCache
}

// New returns an issuer that reads the Secrets which the finder finds.
func New(finder Finder, now func() time.Time) *Issuer { return &Issuer{finder: finder, now: now} }

// Forget drops what is cached for the owner.
func (i *Issuer) Forget(owner types.NamespacedName) { i.cache.forget(owner) }

// Filled is what must be applied.
type Filled struct {
	// Objects are the wanted objects in the order in which they must be applied. Secrets
	// that request a certificate have their data.
	Objects []lifecycle.Object
	// Issued is what applying the objects issues.
	Issued []Issued
	// Due is when to fill in again if nothing changes before; zero without requests.
	Due time.Time
}

// Fill returns the wanted objects with the data of every Secret that requests a
// certificate. A Secret of another owner stays as it was requested, so that the applier
// refuses it. What such an authority would sign stays as it is. A Secret whose data changes
// has the resourceVersion that the change is based on. A request that cannot be satisfied
// is a [RequestError].
func (i *Issuer) Fill(ctx context.Context, owner client.Object, objects []lifecycle.Object) (Filled, error) {
	wanted, err := requestsOf(objects)
	if err != nil || len(wanted) == 0 {
		return Filled{Objects: objects}, err
	}
	for _, w := range wanted {
		if err := i.find(ctx, owner, w); err != nil {
			return Filled{}, err
		}
	}
	result, due, err := i.decide(client.ObjectKeyFromObject(owner), wanted)
	if err != nil {
		return Filled{}, err
	}
	return Filled{Objects: assemble(objects, wanted, result), Issued: result.Issued, Due: due}, nil
}

// find reads the existing Secret.
func (i *Issuer) find(ctx context.Context, owner client.Object, w *wantedSecret) error {
	found, err := i.finder.Find(ctx, owner, w.Secret)
	var foreign *apply.ForeignError
	var terminating *apply.StillDeletingError
	switch {
	case errors.As(err, &foreign), errors.As(err, &terminating):
		w.unavailable = true
	case err != nil:
		return err
	case found != nil:
		w.existing = found.(*corev1.Secret)
	}
	return nil
}

// decide returns the data of every Secret that must have any, and when to decide again.
func (i *Issuer) decide(owner types.NamespacedName, wanted []*wantedSecret) (Result, time.Time, error) {
	now, state := i.now(), digest(wanted)
	if due, ok := i.cache.due(owner, state, now); ok {
		return stored(wanted), due, nil
	}
	plan := Decide(plannable(wanted), now)
	result, err := plan.Execute(now)
	if err != nil {
		return Result{}, time.Time{}, err
	}
	all := stored(wanted)
	maps.Copy(all.Data, result.Data)
	all.Issued, all.Phases = result.Issued, result.Phases
	if !slices.ContainsFunc(wanted, func(w *wantedSecret) bool { return w.changes(all) }) {
		i.cache.put(owner, cachedState{digest: state, due: plan.Due})
	}
	return all, plan.Due, nil
}

// stored is what the existing Secrets hold.
func stored(wanted []*wantedSecret) Result {
	m := Result{Data: map[string]map[string][]byte{}, Phases: map[string]lifecycle.RevocationPhase{}}
	for _, w := range wanted {
		if w.existing != nil {
			m.Data[w.Name] = ownedData(w.existing.Data)
			m.Phases[w.Name] = w.phase()
		}
	}
	return m
}

// ownedData is never nil: the existing Secret must stay among the objects to apply.
func ownedData(data map[string][]byte) map[string][]byte {
	owned := map[string][]byte{}
	for _, k := range ownedKeys {
		if v, ok := data[k]; ok {
			owned[k] = v
		}
	}
	return owned
}

// assemble returns the objects to apply. It leaves out a leaf that is missing and whose
// authority is unavailable.
func assemble(objects []lifecycle.Object, wanted []*wantedSecret, m Result) []lifecycle.Object {
	byObject := map[lifecycle.Object]*wantedSecret{}
	for _, w := range wanted {
		byObject[w.Secret] = w
	}
	var ranked [rankCount][]lifecycle.Object
	for _, obj := range objects {
		w, rank := byObject[obj], rankOthers
		if w != nil && !w.unavailable && m.Data[w.Name] == nil {
			continue
		}
		if w != nil {
			obj, rank = w.filled(m), m.rank(w.Name, w.request)
		}
		ranked[rank] = append(ranked[rank], obj)
	}
	return slices.Concat(ranked[:]...)
}
