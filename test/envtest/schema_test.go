package envtest_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestSchema(t *testing.T) {
	namespace := newNamespace(t)
	long := strings.Repeat("a", 53)
	cases := map[string]struct{ reason, name, spec, want string }{
		"Sample":       {"the manifest that users have works as it is", "memcached-sample", "{size: 3, containerPort: 11211}", ""},
		"NoSpec":       {"everything has a default", "plain", "", ""},
		"Zero":         {"no server is a legal wish", "zero", "{size: 0}", ""},
		"Negative":     {"less than nothing is not", "x", "{size: -1}", "spec.size in body should be greater than or equal to 0"},
		"TooMany":      {"a typo must not fill the cluster", "x", "{size: 501}", "spec.size in body should be less than or equal to 500"},
		"Text":         {"a number is a number", "x", `{size: "three"}`, "spec.size in body must be of type integer"},
		"PortZero":     {"port 0 means any port", "x", "{containerPort: 0}", "spec.containerPort in body should be greater than or equal to 1"},
		"PortHigh":     {"ports end at 65535", "x", "{containerPort: 65536}", "spec.containerPort in body should be less than or equal to 65535"},
		"TwoImages":    {"only one can be run", "x", `{image: a/b, version: "1.6.38"}`, "spec.image and spec.version exclude each other"},
		"Version":      {"a version is a release", "x", `{version: latest}`, "spec.version in body should match"},
		"LittleMemory": {"no room would be left for items", "x", "{memory: 48Mi}", "spec.memory must be at least 64Mi"},
		"MemoryNumber": {"bytes are a quantity too", "bytes", "{memory: 134217728}", ""},
		"NoQuantity":   {"nonsense is refused", "x", "{memory: much}", "spec.memory"},
		"TwoLimits":    {"memory has one place", "x", "{resources: {limits: {memory: 1Gi}}}", "spec.memory sets the memory limit"},
		"LongName":     {"labels are limited", long, "", "metadata.name must be at most 52 characters long"},
		"Digit":        {"a Service's name starts with a letter", "1st", "", "metadata.name must start with a letter"},
		"Dot":          {"a Service's name has no dots", "a.b", "", "metadata.name must start with a letter"},
		"UnknownField": {"a typo in a field's name is refused", "x", "{sise: 3}", `unknown field "spec.sise"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := create(t, "cache.example.com/v1alpha1", "Memcached", namespace, c.name, c.spec)
			if otherThan(err, c.want) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}
		})
	}
}

// create creates an object as kubectl does, which rejects unknown fields. An empty spec
// means no spec.
func create(t *testing.T, version, kind, namespace, name, spec string) error {
	t.Helper()
	u := &unstructured.Unstructured{}
	if spec != "" {
		must(t, yaml.Unmarshal([]byte("spec: "+spec), &u.Object))
	}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetName(name)
	u.SetNamespace(namespace)
	return strict().Create(t.Context(), u)
}

// otherThan reports whether the error differs from the wanted one; an empty want means no
// error.
func otherThan(err error, want string) bool {
	if err == nil || want == "" {
		return (err == nil) != (want == "")
	}
	return !strings.Contains(err.Error(), want)
}
