package certificate

import (
	"bytes"
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

// Finder finds what there is of a wanted object, see [apply.Applier.Find].
type Finder interface {
	Find(ctx context.Context, owner client.Object, wanted lifecycle.Object) (client.Object, error)
}

// Issuer fills in the Secrets of all objects of one application. It is safe for
// concurrent use for different owners.
type Issuer struct {
	finder Finder
	now    func() time.Time
	known  memory
}

// New returns an issuer that looks at the Secrets which the finder finds.
func New(finder Finder, now func() time.Time) *Issuer { return &Issuer{finder: finder, now: now} }

// Forget drops what is remembered about the owner.
func (i *Issuer) Forget(owner types.NamespacedName) { i.known.forget(owner) }

// Filled is what is to be applied.
type Filled struct {
	// Objects are the wanted ones, with the data of those that asked for it. They are
	// to be applied in this order.
	Objects []lifecycle.Object
	// Issued is what is made when the objects are applied.
	Issued []Issued
	// Due is when to fill in again if nothing changes before; zero if nobody asked.
	Due time.Time
}

// Fill returns the wanted objects with the data of every Secret that has a recipe. A
// Secret of somebody else is left as it was asked for, for the applier to refuse, and
// what it would sign stays as it is. A Secret whose data changes has the
// resourceVersion that the change is meant for. A recipe that nobody can follow is a
// [RecipeError].
func (i *Issuer) Fill(ctx context.Context, owner client.Object, wanted []lifecycle.Object) (Filled, error) {
	asked, err := read(wanted)
	if err != nil || len(asked) == 0 {
		return Filled{Objects: wanted}, err
	}
	for _, r := range asked {
		if err := i.find(ctx, owner, r); err != nil {
			return Filled{}, err
		}
	}
	made, due, err := i.decide(client.ObjectKeyFromObject(owner), asked)
	if err != nil {
		return Filled{}, err
	}
	return Filled{Objects: assemble(wanted, asked, made), Issued: made.Issued, Due: due}, nil
}

// find looks at what there is of the Secret.
func (i *Issuer) find(ctx context.Context, owner client.Object, r *request) error {
	found, err := i.finder.Find(ctx, owner, r.secret)
	var foreign *apply.ForeignError
	var going *apply.GoingError
	switch {
	case errors.As(err, &foreign), errors.As(err, &going):
		r.taken = true
	case err != nil:
		return err
	case found != nil:
		r.existing = found.(*corev1.Secret)
	}
	return nil
}

// decide returns the data of every Secret that is to have any, and when to decide
// again.
func (i *Issuer) decide(owner types.NamespacedName, asked []*request) (Made, time.Time, error) {
	now, state := i.now(), digest(asked)
	if due, known := i.known.due(owner, state, now); known {
		return present(asked), due, nil
	}
	plan := Judge(orders(asked), now)
	made, err := plan.Make(now)
	if err != nil {
		return Made{}, time.Time{}, err
	}
	all := present(asked)
	maps.Copy(all.Data, made.Data)
	all.Issued, all.Phases = made.Issued, made.Phases
	if !slices.ContainsFunc(asked, func(r *request) bool { return r.changes(all) }) {
		i.known.learn(owner, verdict{state: state, due: plan.Due})
	}
	return all, plan.Due, nil
}

// present is what the Secrets hold already.
func present(asked []*request) Made {
	m := Made{Data: map[string]map[string][]byte{}, Phases: map[string]lifecycle.RevocationPhase{}}
	for _, r := range asked {
		if r.existing != nil {
			m.Data[r.name()] = ours(r.existing.Data)
			m.Phases[r.name()] = r.phase()
		}
	}
	return m
}

// ours are the keys that belong to the issuer.
func ours(data map[string][]byte) map[string][]byte {
	some := map[string][]byte{}
	for _, k := range keys {
		if v, ok := data[k]; ok {
			some[k] = v
		}
	}
	return some
}

// assemble returns the objects to apply: one that cannot be had now, because its
// authority's name is taken, is left out.
func assemble(wanted []lifecycle.Object, asked []*request, made Made) []lifecycle.Object {
	byObject := map[lifecycle.Object]*request{}
	for _, r := range asked {
		byObject[r.secret] = r
	}
	var ranked [ranks][]lifecycle.Object
	for _, obj := range wanted {
		r, rank := byObject[obj], others
		if r != nil && !r.taken && made.Data[r.name()] == nil {
			continue
		}
		if r != nil {
			obj, rank = r.filled(made), made.rank(r.name(), r.recipe)
		}
		ranked[rank] = append(ranked[rank], obj)
	}
	return slices.Concat(ranked[:]...)
}

// changes reports whether the Secret is to hold something else than it does.
func (r *request) changes(made Made) bool {
	if r.existing == nil || r.recipe.Revocation != nil && r.phase() != made.Phases[r.name()] {
		return true
	}
	for _, k := range keys {
		if !bytes.Equal(r.existing.Data[k], made.Data[r.name()][k]) {
			return true
		}
	}
	return false
}

// filled is the Secret to apply.
func (r *request) filled(made Made) *corev1.Secret {
	s := r.secret.DeepCopy()
	switch {
	case r.existing == nil: // it is created or, if somebody was faster, looked at again
		s.ResourceVersion = apply.Never
	case r.changes(made):
		s.ResourceVersion = r.existing.ResourceVersion
	}
	s.Data = made.Data[r.name()]
	if phase := made.Phases[r.name()]; phase != "" && r.recipe.Revocation != nil {
		s.Annotations[lifecycle.AnnotationRevocation] = string(phase)
	}
	return s
}

// phase is what the Secret says about its revocation.
func (r *request) phase() lifecycle.RevocationPhase {
	return lifecycle.RevocationPhase(r.existing.Annotations[lifecycle.AnnotationRevocation])
}
