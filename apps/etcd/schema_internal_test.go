package etcd

import (
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// The API server refuses a whole status because of one list that is too long.
func TestTriedSpreadsFitTheSchema(t *testing.T) {
	raw, err := os.ReadFile("../../config/crd/etcd.database.coreos.com_etcdclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, v := range crd.Spec.Versions {
		bootstrap := v.Schema.OpenAPIV3Schema.Properties["status"].Properties["bootstrap"]
		if tried, ok := bootstrap.Properties["triedSpreads"]; ok {
			checked++
			if tried.MaxItems == nil || *tried.MaxItems < maxTried {
				t.Errorf("%s: status.bootstrap.triedSpreads may hold %v entries, and Status writes up to %d", v.Name, tried.MaxItems, maxTried)
			}
		}
	}
	if checked == 0 {
		t.Error("no version has status.bootstrap.triedSpreads")
	}
}
