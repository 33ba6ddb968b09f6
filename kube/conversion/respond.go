package conversion

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// objectID is the type and the name of an object.
type objectID struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

func (h objectID) String() string {
	return fmt.Sprintf("%s %s/%s of %s", h.Kind, h.Metadata.Namespace, h.Metadata.Name, h.APIVersion)
}

// respond converts all objects or none, as the API server requires.
func (h *Handler) respond(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, obj := range request.Objects {
		converted, err := h.convert(obj.Raw, request.DesiredAPIVersion)
		if err != nil {
			return &apiextensionsv1.ConversionResponse{
				UID: request.UID, Result: metav1.Status{Status: metav1.StatusFailure, Message: err.Error()},
			}
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: converted})
	}
	return response
}

func (h *Handler) convert(raw []byte, to string) (runtime.Object, error) {
	var id objectID
	if err := json.Unmarshal(raw, &id); err != nil {
		return nil, fmt.Errorf("an object cannot be read: %w", err)
	}
	version, err := schema.ParseGroupVersion(to)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be converted: %w", id, err)
	}
	function, ok := h.functions[conversionKey{id.GroupVersionKind(), version}]
	if !ok {
		return nil, fmt.Errorf("%s cannot be converted to %s: Governor does not support this conversion", id, to)
	}
	converted, err := recoverPanic(function, raw)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be converted to %s: %w", id, to, err)
	}
	return converted, nil
}

// recoverPanic returns a panic as an error. Otherwise the API server would only see a broken
// connection.
func recoverPanic(function func([]byte) (runtime.Object, error), raw []byte) (converted runtime.Object, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("this is a bug in Governor: %v", panicked)
		}
	}()
	return function(raw)
}
