package conversion_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/governor-dev/governor/kube/conversion"
)

// pods returns a handler for a kind with two versions.
func pods() *conversion.Handler {
	h := conversion.New()
	conversion.Add(h, corev1.SchemeGroupVersion.WithKind("Pod"), schema.GroupVersion{Group: "x", Version: "v2"},
		func(in *corev1.Pod) (*corev1.Pod, error) {
			switch in.Name {
			case "refused":
				return nil, errors.New("spec.hostname has no meaning any more")
			case "bug":
				panic("a nil map")
			}
			in.APIVersion = "x/v2"
			return in, nil
		})
	return h
}

func post(t *testing.T, h http.Handler, body string) (int, *apiextensionsv1.ConversionReview) {
	t.Helper()
	response := httptest.NewRecorder()
	h.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodPost, conversion.Path, strings.NewReader(body)))
	review := &apiextensionsv1.ConversionReview{}
	if response.Code == http.StatusOK {
		if err := json.Unmarshal(response.Body.Bytes(), review); err != nil {
			t.Fatal(err)
		}
	}
	return response.Code, review
}

func review(to string, objects ...string) string {
	raw, err := json.Marshal(apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		UID: "u", DesiredAPIVersion: to, Objects: raws(objects),
	}})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func raws(objects []string) []runtime.RawExtension {
	var all []runtime.RawExtension
	for _, o := range objects {
		all = append(all, runtime.RawExtension{Raw: []byte(o)})
	}
	return all
}

func pod(name, spec string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","namespace":"n"},"spec":` + spec + `}`
}

func TestConvertsAllObjectsInOrder(t *testing.T) {
	code, got := post(t, pods(), review("x/v2", pod("a", `{}`), pod("b", `{"hostname":"h"}`)))
	if code != http.StatusOK || got.Request != nil || got.Response.UID != "u" || got.Response.Result.Status != "Success" {
		t.Fatalf("%d %+v", code, got.Response)
	}
	for i, want := range []string{"a", "b"} {
		p := &corev1.Pod{}
		if err := json.Unmarshal(got.Response.ConvertedObjects[i].Raw, p); err != nil || p.Name != want || p.APIVersion != "x/v2" {
			t.Errorf("object %d is %s of %s: %v", i, p.Name, p.APIVersion, err)
		}
	}
}

// One bad object fails the whole response, so the error must name the object and the
// field.
func TestFailureNamesObjectAndField(t *testing.T) {
	const prefix = "Pod n/p of v1 cannot be converted to x/v2: "
	cases := map[string]struct{ reason, object, to, want string }{
		"type":     {"a string is not a number", pod("p", `{"priority":"high"}`), "x/v2", prefix + "spec.priority: json: cannot unmarshal string"},
		"quantity": {"the decoder names no field", pod("p", `{"containers":[{"name":"a"},{"resources":{"limits":{"cpu":"1","memory":"much"}}}]}`), "x/v2", prefix + "spec.containers[1].resources.limits.memory: quantities must match"},
		"time":     {"the decoder names no field for a time", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","creationTimestamp":"now"}}`, "x/v2", prefix + "metadata.creationTimestamp: parsing time"},
		"shape":    {"a list is not an object", pod("p", `{"affinity":[1]}`), "x/v2", prefix + "spec.affinity: json: cannot unmarshal array"},
		"object":   {"an object is not a list", pod("p", `{"containers":{"name":"a"}}`), "x/v2", prefix + "spec.containers: json: cannot unmarshal object"},
		"function": {"the conversion function may refuse", pod("refused", `{}`), "x/v2", "Pod n/refused of v1 cannot be converted to x/v2: spec.hostname has no meaning any more"},
		"panic":    {"a panic becomes an error", pod("bug", `{}`), "x/v2", "Pod n/bug of v1 cannot be converted to x/v2: this is a bug in Governor: a nil map"},
		"version":  {"the version is unknown", pod("p", `{}`), "x/v3", "Pod n/p of v1 cannot be converted to x/v3: Governor does not support this conversion"},
		"nonsense": {"the version is malformed", pod("p", `{}`), "a/b/c", "Pod n/p of v1 cannot be converted: unexpected GroupVersion string"},
		"null":     {"null is not an object", `null`, "x/v2", "an object cannot be read"},
		"list":     {"a list is not an object", `[]`, "x/v2", "an object cannot be read"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, got := post(t, pods(), review(c.to, pod("good", `{}`), c.object))
			if c.to != "x/v2" {
				code, got = post(t, pods(), review(c.to, c.object))
			}
			r := got.Response
			if code != http.StatusOK || r.Result.Status != "Failure" || len(r.ConvertedObjects) != 0 || !strings.Contains(r.Result.Message, c.want) {
				t.Errorf("%s: %d %+v, want %q", c.reason, code, r, c.want)
			}
		})
	}
}

func TestRejectsMalformedRequests(t *testing.T) {
	for _, body := range []string{"", "x", "{}", `{"request":1}`, `{"request":null}`, `{"x":"` + strings.Repeat("a", 33<<20) + `"}`} {
		if code, _ := post(t, pods(), body); code != http.StatusBadRequest {
			t.Errorf("%.20q: %d", body, code)
		}
	}
}

// FuzzAnswer checks that the handler answers for every object.
func FuzzAnswer(f *testing.F) {
	for _, o := range []string{pod("a", `{}`), pod("a", `{"containers":[{"resources":{"limits":{"cpu":1e9999}}}]}`), `{"metadata":[]}`, "\"\\u0000\""} {
		f.Add([]byte(o))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		if !json.Valid(object) {
			t.Skip()
		}
		code, got := post(t, pods(), review("x/v2", string(object)))
		if code != http.StatusOK || got.Response.Result.Status == "Failure" && got.Response.Result.Message == "" {
			t.Errorf("%d %+v", code, got.Response)
		}
	})
}
