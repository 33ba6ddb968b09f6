// Package conversion converts custom resources between their versions when an API
// server asks for it.
//
// controller-runtime has a handler for this, too. It is not used because one object
// that cannot be converted fails the whole answer, and that handler says neither
// which object it is nor which of its fields.
package conversion

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// Path is where conversion is served, as dist/install.yaml has it.
const Path = "/convert"

// limit is how many bytes a question may have. An API server accepts objects of 3
// MiB and asks about few at once.
const limit = 32 << 20

// Handler answers ConversionReviews. All functions are added before it serves.
type Handler struct {
	functions map[route]func(raw []byte) (runtime.Object, error)
}

type route struct {
	from schema.GroupVersionKind
	to   schema.GroupVersion
}

// New returns a handler that converts nothing yet.
func New() *Handler { return &Handler{functions: map[route]func([]byte) (runtime.Object, error){}} }

// object is a pointer to an S.
type object[S any] interface {
	*S
	runtime.Object
}

// Carry completes what was converted with what the Go types of the function lack:
// fields of a later release, whose definition is installed already. Both objects are
// decoded JSON.
type Carry func(in, out map[string]any) error

// Add lets the handler convert objects of the kind to the version by a function
// that keeps no part of its argument.
func Add[S, D any, P object[S], Q object[D]](h *Handler, from schema.GroupVersionKind, to schema.GroupVersion,
	convert func(P) (Q, error), carries ...Carry) {
	h.functions[route{from, to}] = func(raw []byte) (runtime.Object, error) {
		in := P(new(S))
		if err := json.Unmarshal(raw, in); err != nil {
			return nil, locateError(raw, err, func(part []byte) error { return json.Unmarshal(part, P(new(S))) })
		}
		out, err := convert(in)
		if err != nil || len(carries) == 0 {
			return out, err
		}
		return completed(raw, out, carries)
	}
}

// completed is the converted object with what the functions carry into it.
func completed(raw []byte, converted runtime.Object, carries []Carry) (runtime.Object, error) {
	var in, out map[string]any
	known, err := json.Marshal(converted)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(json.Unmarshal(raw, &in), json.Unmarshal(known, &out)); err != nil {
		return nil, err
	}
	for _, carry := range carries {
		if err := carry(in, out); err != nil {
			return nil, err
		}
	}
	return &unstructured.Unstructured{Object: out}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		err = json.Unmarshal(raw, review)
	}
	if err != nil || review.Request == nil {
		http.Error(w, fmt.Sprintf("a ConversionReview with a request is expected: %v", err), http.StatusBadRequest)
		return
	}
	review.Response, review.Request = h.respond(review.Request), nil
	if raw, err = json.Marshal(review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}
