package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestAllKindsHaveTheSameColumns: `kubectl get` shows every kind alike, those of an author, too:
// READY, STATUS, VERSION if it has one, what is special about the kind, and AGE.
func TestAllKindsHaveTheSameColumns(t *testing.T) {
	for _, crd := range crds(t, "../crd/*.yaml", "../../examples/*/config/crd/*.yaml", "../../scaffold/templates/crd.yaml.tmpl") {
		for _, version := range crd.Spec.Versions {
			if version.Deprecated {
				continue // it has the columns of the operator that it comes from
			}
			all := columns(version)
			if len(all) < 3 || all[0].Name != "Ready" || all[1].Name != "Status" || all[len(all)-1].Name != "Age" {
				t.Errorf("%s %s has the columns %v", crd.Name, version.Name, names(all))
				continue
			}
			if at := slices.Index(names(all), "Version"); at > 2 {
				t.Errorf("%s %s has its version in the column %d", crd.Name, version.Name, at+1)
			}
			if !strings.HasSuffix(all[1].JSONPath, ".reason") || all[len(all)-1].JSONPath != ".metadata.creationTimestamp" {
				t.Errorf("%s %s has %s as its status and %s as its age", crd.Name, version.Name, all[1].JSONPath, all[len(all)-1].JSONPath)
			}
		}
	}
}

// crds returns the custom resource definitions in the files. It reads a template, too.
func crds(t *testing.T, patterns ...string) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []apiextensionsv1.CustomResourceDefinition
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s is %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict([]byte(braces.ReplaceAllString(read(t, file), "$1")), &crd); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, crd)
		}
	}
	return all
}

// braces are the fields of a template.
var braces = regexp.MustCompile(`\{\{(\w+)\}\}`)

// columns are the columns of the default output.
func columns(version apiextensionsv1.CustomResourceDefinitionVersion) (all []apiextensionsv1.CustomResourceColumnDefinition) {
	for _, c := range version.AdditionalPrinterColumns {
		if c.Priority == 0 {
			all = append(all, c)
		}
	}
	return all
}

func names(columns []apiextensionsv1.CustomResourceColumnDefinition) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.Name
	}
	return all
}

// TestShortNamesBelongToOneKind: no short name is a name of another operator's kind, which
// kubectl would prefer: etcd is the singular of OpenShift's and druid's kinds, and ps the
// short name of Percona Server for MySQL.
func TestShortNamesBelongToOneKind(t *testing.T) {
	taken := map[string]string{"etcd": "OpenShift and druid", "etcds": "OpenShift and druid", "ec": "several operators", "ps": "Percona Server for MySQL"}
	for _, crd := range crds(t, "../crd/*.yaml") {
		if len(crd.Spec.Names.ShortNames) == 0 {
			t.Errorf("%s has no short name", crd.Name)
		}
		for _, short := range crd.Spec.Names.ShortNames {
			if other, ok := taken[short]; ok {
				t.Errorf("the short name %s of %s belongs to %s", short, crd.Name, other)
			}
			taken[short] = crd.Name
		}
	}
}
