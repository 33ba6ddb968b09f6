package main

import (
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestApplicationsHaveTheSameColumns: `kubectl get` shows every application alike.
func TestApplicationsHaveTheSameColumns(t *testing.T) {
	files, err := filepath.Glob("../crd/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(read(t, file)), &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			if version.Subresources == nil || version.Subresources.Scale == nil || version.Deprecated {
				continue // a policy, an approval, or a legacy version
			}
			first, second, last := columns(version)
			if first != ".status.ready" || second != `.status.conditions[?(@.type=="Ready")].reason` || last != ".metadata.creationTimestamp" {
				t.Errorf("%s %s begins with the columns %s and %s and ends with %s", crd.Name, version.Name, first, second, last)
			}
		}
	}
}

// columns are the paths of the first two and the last column of the default output.
func columns(version apiextensionsv1.CustomResourceDefinitionVersion) (first, second, last string) {
	var paths []string
	for _, c := range version.AdditionalPrinterColumns {
		if c.Priority == 0 {
			paths = append(paths, c.JSONPath)
		}
	}
	return paths[0], paths[1], paths[len(paths)-1]
}
