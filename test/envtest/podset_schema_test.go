package envtest_test

import (
	"strings"
	"testing"
)

func TestPodSetSchema(t *testing.T) {
	namespace := newNamespace(t)
	cases := map[string]struct{ reason, name, spec, want string }{
		"Sample":       {"the manifest that users have works as it is", "example-podset", "{replicas: 3}", ""},
		"NoSpec":       {"everything has a default", "plain", "", ""},
		"Zero":         {"no pod is a legal wish", "zero", "{replicas: 0}", ""},
		"Negative":     {"less than nothing is not", "x", "{replicas: -1}", "spec.replicas in body should be greater than or equal to 0"},
		"TooMany":      {"a typo must not fill the cluster", "x", "{replicas: 5001}", "spec.replicas in body should be less than or equal to 5000"},
		"Text":         {"a number is a number", "x", `{replicas: "three"}`, "spec.replicas in body must be of type integer"},
		"OnlyLabels":   {"the pod has a default of its own", "labels", `{template: {metadata: {labels: {a: b}}}}`, ""},
		"NoContainers": {"a pod has containers", "x", `{template: {spec: {restartPolicy: Never}}}`, "spec.template.spec.containers"},
		"AwayNumber":   {"a number of pods may be away", "n", `{maxUnavailable: 2}`, ""},
		"AwayShare":    {"so may a part of them", "s", `{maxUnavailable: 100%}`, ""},
		"AwayNone":     {"then nothing could be replaced", "x", `{maxUnavailable: 0}`, "spec.maxUnavailable must be a number from 1 to 5000, or a percentage"},
		"AwayNoShare":  {"nor with none of them", "x", `{maxUnavailable: 0%}`, "spec.maxUnavailable must be"},
		"AwayNonsense": {"nonsense is refused", "x", `{maxUnavailable: some}`, "spec.maxUnavailable must be"},
		"LongName":     {"host names are limited", strings.Repeat("a", 58), "", "metadata.name must be at most 57 characters long"},
		"Dot":          {"host names have no dots", "a.b", "", "metadata.name must have only small letters"},
		"UnknownField": {"a typo in a field's name is refused", "x", "{replica: 3}", `unknown field "spec.replica"`},
		"UnknownPod":   {"so is one in the template", "x", "{template: {spec: {container: []}}}", `unknown field "spec.template.spec.container"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := create(t, "app.example.com/v1alpha1", "PodSet", namespace, c.name, c.spec)
			if otherThan(err, c.want) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}
		})
	}
}
