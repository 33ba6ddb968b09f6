// Package credential adds what a Planner may not know to the Secrets that ask for it: passwords and certificates.
package credential

import (
	"context"
	"crypto/rand"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/certificate"
	"github.com/governor-dev/governor/kube/password"
	"github.com/governor-dev/governor/lifecycle"
)

// Filler fills in the Secrets of all objects of one application. It is safe for concurrent use for different owners.
type Filler struct {
	finder       certificate.Finder
	certificates *certificate.Issuer
}

// New returns a filler that reads the Secrets which the finder finds.
func New(finder certificate.Finder, now func() time.Time) *Filler {
	return &Filler{finder: finder, certificates: certificate.New(finder, now)}
}

// Fill returns the wanted objects in the order in which they must be applied, with the data of every Secret that asks for a
// password or a certificate. Errors are those of [password.Fill] and [certificate.Issuer.Fill].
func (f *Filler) Fill(ctx context.Context, owner client.Object, objects []lifecycle.Object) (certificate.Filled, error) {
	objects, err := password.Fill(ctx, f.finder, rand.Reader, owner, objects)
	if err != nil {
		return certificate.Filled{}, err
	}
	return f.certificates.Fill(ctx, owner, objects)
}

// Forget drops what is cached for the owner.
func (f *Filler) Forget(owner types.NamespacedName) { f.certificates.Forget(owner) }
