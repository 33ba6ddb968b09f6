package conversion

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// head is what is known of any object.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

func (h head) String() string {
	return fmt.Sprintf("%s %s/%s of %s", h.Kind, h.Metadata.Namespace, h.Metadata.Name, h.APIVersion)
}

// respond converts all objects or none: that is the API server's contract.
func (h *Handler) respond(asked *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: asked.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, obj := range asked.Objects {
		converted, err := h.convert(obj.Raw, asked.DesiredAPIVersion)
		if err != nil {
			return &apiextensionsv1.ConversionResponse{
				UID: asked.UID, Result: metav1.Status{Status: metav1.StatusFailure, Message: err.Error()},
			}
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: converted})
	}
	return response
}

func (h *Handler) convert(raw []byte, to string) (runtime.Object, error) {
	var who head
	if err := json.Unmarshal(raw, &who); err != nil {
		return nil, fmt.Errorf("an object cannot be read: %w", err)
	}
	version, err := schema.ParseGroupVersion(to)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be converted: %w", who, err)
	}
	function, ok := h.functions[route{who.GroupVersionKind(), version}]
	if !ok {
		return nil, fmt.Errorf("%s cannot be converted to %s: Governor knows no such conversion", who, to)
	}
	converted, err := guarded(function, raw)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be converted to %s: %w", who, to, err)
	}
	return converted, nil
}

// guarded makes an error of a panic: without it the API server would be told only
// that the connection broke.
func guarded(function func([]byte) (runtime.Object, error), raw []byte) (converted runtime.Object, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("this is a bug in Governor: %v", thrown)
		}
	}()
	return function(raw)
}
