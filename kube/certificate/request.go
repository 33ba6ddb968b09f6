package certificate

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// RequestError says that a request cannot be satisfied.
type RequestError struct {
	Secret string
	Fault  string
}

// Error implements error.
func (e *RequestError) Error() string {
	return fmt.Sprintf("cannot issue the certificate of Secret %q: %s", e.Secret, e.Fault)
}

// wantedSecret is one Secret that requests a certificate, and the existing Secret.
type wantedSecret struct {
	*corev1.Secret
	request     lifecycle.Certificate
	existing    *corev1.Secret // read-only; nil if there is none
	unavailable bool           // another owner has the name, or the Secret is being deleted
}

// requestsOf returns the objects that request a certificate.
func requestsOf(objects []lifecycle.Object) ([]*wantedSecret, error) {
	var all []*wantedSecret
	authorities := map[string]bool{}
	for _, obj := range objects {
		request, ok, err := lifecycle.CertificateOf(obj)
		if err != nil {
			return nil, &RequestError{Secret: obj.GetName(), Fault: err.Error()}
		}
		if !ok {
			continue
		}
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			return nil, &RequestError{Secret: obj.GetName(), Fault: "the object is not a Secret"}
		}
		all = append(all, &wantedSecret{Secret: secret, request: request})
		authorities[secret.Name] = request.Authority == ""
	}
	for _, w := range all {
		if fault := w.validate(authorities); fault != "" {
			return nil, &RequestError{Secret: w.Name, Fault: fault}
		}
	}
	return all, nil
}

// validate returns what is wrong with the request, or nothing.
func (w *wantedSecret) validate(authorities map[string]bool) string {
	if w.request.Authority != "" && w.request.Revocation != nil {
		return "only the request of an authority can have a revocation"
	}
	if a := w.request.Authority; a != "" && !authorities[a] {
		return fmt.Sprintf("the application requests no authority called %q", a)
	}
	for _, address := range w.request.IPAddresses {
		if net.ParseIP(address) == nil {
			return fmt.Sprintf("%q is not an IP address", address)
		}
	}
	return ""
}

// changes reports whether the existing Secret differs from the result.
func (w *wantedSecret) changes(m Result) bool {
	if w.existing == nil || w.request.Revocation != nil && w.phase() != m.Phases[w.Name] {
		return true
	}
	return slices.ContainsFunc(ownedKeys, func(k string) bool {
		return !bytes.Equal(w.existing.Data[k], m.Data[w.Name][k])
	})
}

// filled returns the Secret to apply.
func (w *wantedSecret) filled(m Result) *corev1.Secret {
	s := w.DeepCopy()
	switch {
	case w.existing == nil: // the write fails if another client has created the Secret since
		s.ResourceVersion = apply.CreateOnlyVersion
	case w.changes(m):
		s.ResourceVersion = w.existing.ResourceVersion
	}
	s.Data = m.Data[w.Name]
	if phase := m.Phases[w.Name]; phase != "" && w.request.Revocation != nil {
		s.Annotations[lifecycle.AnnotationRevocation] = string(phase)
	}
	return s
}

// phase is the phase of the revocation in the existing Secret.
func (w *wantedSecret) phase() lifecycle.RevocationPhase {
	return lifecycle.RevocationPhase(w.existing.Annotations[lifecycle.AnnotationRevocation])
}

// plannable returns the requests to plan. A Secret that is unavailable cannot be written,
// and an authority that is unavailable cannot sign its leaves.
func plannable(wanted []*wantedSecret) []Request {
	unavailable := map[string]bool{}
	for _, w := range wanted {
		unavailable[w.Name] = w.unavailable
	}
	var all []Request
	for _, w := range wanted {
		if w.unavailable || unavailable[w.request.Authority] {
			continue
		}
		r := Request{Name: w.Name, Certificate: w.request}
		if w.existing != nil {
			r.Data = w.existing.Data
		}
		all = append(all, r)
	}
	return all
}

// digest is the same as long as the plan is.
func digest(wanted []*wantedSecret) [sha256.Size]byte {
	h := sha256.New()
	for _, w := range wanted {
		_, _ = fmt.Fprintf(h, "%q %q %t", w.Name, w.Annotations[lifecycle.AnnotationCertificate], w.unavailable)
		if w.existing != nil {
			_, _ = fmt.Fprintf(h, " %s %s", w.existing.UID, w.existing.ResourceVersion)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
