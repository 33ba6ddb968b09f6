// Package conversion serves the conversion webhook for the versions of custom resources.
//
// controller-runtime's handler is not used. One object that cannot be converted fails the
// whole response, and that handler names neither the object nor the field.
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

// Path is the URL path of the webhook, as in dist/install.yaml.
const Path = "/convert"

// maxBodyBytes is the maximum size of a request body in bytes. The API server accepts
// objects of up to 3 MiB and sends few per request.
const maxBodyBytes = 32 << 20

// Handler answers ConversionReviews. Add all functions before it serves requests.
type Handler struct {
	functions map[conversionKey]func(raw []byte) (runtime.Object, error)
}

type conversionKey struct {
	from schema.GroupVersionKind
	to   schema.GroupVersion
}

// New returns a handler without conversions.
func New() *Handler {
	return &Handler{functions: map[conversionKey]func([]byte) (runtime.Object, error){}}
}

// object is the constraint of a pointer to an S.
type object[S any] interface {
	*S
	runtime.Object
}

// Carry copies into out the fields of in that the Go types of the conversion function
// lack: fields of a later release whose CRD is installed already. Both objects are decoded
// JSON.
type Carry func(in, out map[string]any) error

// Add registers the function that converts objects of the kind to the version. The
// function must not retain its argument.
func Add[S, D any, P object[S], Q object[D]](h *Handler, from schema.GroupVersionKind, to schema.GroupVersion,
	convert func(P) (Q, error), carries ...Carry) {
	h.functions[conversionKey{from, to}] = func(raw []byte) (runtime.Object, error) {
		in := P(new(S))
		if err := json.Unmarshal(raw, in); err != nil {
			return nil, locateError(raw, err, func(part []byte) error { return json.Unmarshal(part, P(new(S))) })
		}
		out, err := convert(in)
		if err != nil || len(carries) == 0 {
			return out, err
		}
		return withCarries(raw, out, carries)
	}
}

// withCarries returns the converted object with the fields that the carries add.
func withCarries(raw []byte, converted runtime.Object, carries []Carry) (runtime.Object, error) {
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
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
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
