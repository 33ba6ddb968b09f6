package apply

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/governor-dev/governor/lifecycle"
)

// Failure is the error of one wanted object.
type Failure struct {
	Object lifecycle.Object
	Kind   string
	Err    error
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error of the object.
func (f *Failure) Unwrap() error { return f.Err }

// failureOf returns err as the error of the wanted object, or nil.
func (a *Applier) failureOf(wanted lifecycle.Object, err error) error {
	if err == nil {
		return nil
	}
	gvk, _ := apiutil.GVKForObject(client.Object(wanted), a.client.Scheme())
	return &Failure{Object: wanted, Kind: gvk.Kind, Err: err}
}

// BlockedObjects returns the objects of an error of Apply or ApplyAround that need a user or
// another controller: the name is taken, an earlier object is still being deleted, or the
// API server rejects the content. It returns none if the error has any other cause as
// well.
func BlockedObjects(err error) []*Failure {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Failure
		for _, one := range joined.Unwrap() {
			some := BlockedObjects(one)
			if len(some) == 0 {
				return nil
			}
			all = append(all, some...)
		}
		return all
	}
	var f *Failure
	var foreign *ForeignError
	var going *StillDeletingError
	var ownerless *OwnerDeletingError
	if errors.As(err, &f) && (errors.As(err, &foreign) || errors.As(err, &going) || errors.As(err, &ownerless) || apierrors.IsInvalid(err)) {
		return []*Failure{f}
	}
	return nil
}
