package certificate

import (
	"crypto/sha256"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// RecipeError says that a recipe cannot be followed.
type RecipeError struct {
	Secret string
	Fault  string
}

// Error implements error.
func (e *RecipeError) Error() string {
	return fmt.Sprintf("the certificate of Secret %q cannot be made: %s", e.Secret, e.Fault)
}

// request is one wanted Secret with a recipe, and what there is of it.
type request struct {
	secret   *corev1.Secret
	recipe   lifecycle.Certificate
	existing *corev1.Secret // read-only; nil if there is none
	taken    bool           // somebody else has one of that name
}

func (r *request) name() string { return r.secret.Name }

// read returns the Secrets with a recipe.
func read(wanted []lifecycle.Object) ([]*request, error) {
	var asked []*request
	authorities := map[string]bool{}
	for _, obj := range wanted {
		recipe, asks, err := lifecycle.RecipeOf(obj)
		if err != nil {
			return nil, &RecipeError{Secret: obj.GetName(), Fault: err.Error()}
		}
		if !asks {
			continue
		}
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			return nil, &RecipeError{Secret: obj.GetName(), Fault: "it is not a Secret"}
		}
		asked = append(asked, &request{secret: secret, recipe: recipe})
		authorities[secret.Name] = recipe.Authority == ""
	}
	return asked, check(asked, authorities)
}

func check(asked []*request, authorities map[string]bool) error {
	for _, r := range asked {
		if r.recipe.Authority != "" && r.recipe.Revocation != nil {
			return &RecipeError{Secret: r.name(), Fault: "only an authority can revoke"}
		}
		if a := r.recipe.Authority; a != "" && !authorities[a] {
			return &RecipeError{Secret: r.name(), Fault: fmt.Sprintf("nothing wanted is an authority called %q", a)}
		}
		for _, address := range r.recipe.IPAddresses {
			if net.ParseIP(address) == nil {
				return &RecipeError{Secret: r.name(), Fault: fmt.Sprintf("%q is not an IP address", address)}
			}
		}
	}
	return nil
}

// orders are the requests that can be judged: a taken name cannot be written, and a
// leaf cannot be signed by an authority that nobody may see.
func orders(asked []*request) []Order {
	taken := map[string]bool{}
	for _, r := range asked {
		taken[r.name()] = r.taken
	}
	var all []Order
	for _, r := range asked {
		if r.taken || taken[r.recipe.Authority] {
			continue
		}
		o := Order{Name: r.name(), Recipe: r.recipe}
		if r.existing != nil {
			o.Data = r.existing.Data
		}
		all = append(all, o)
	}
	return all
}

// digest is the same as long as a verdict is.
func digest(asked []*request) [sha256.Size]byte {
	h := sha256.New()
	for _, r := range asked {
		_, _ = fmt.Fprintf(h, "%q %q %t", r.name(), r.secret.Annotations[lifecycle.AnnotationCertificate], r.taken)
		if r.existing != nil {
			_, _ = fmt.Fprintf(h, " %s %s", r.existing.UID, r.existing.ResourceVersion)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
