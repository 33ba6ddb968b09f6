package main

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// built are the objects of a kustomization, by kind and name.
func built(t *testing.T, dir string) map[string]string {
	t.Helper()
	found, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, r := range found.Resources() {
		content, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSpace(r.GetKind()+" "+r.GetName()+" "+r.GetNamespace())] = string(content)
	}
	return all
}

// The variant for namespaces differs from the install in the operator's rights and its flag.
func TestTheVariantForNamespaces(t *testing.T) {
	whole, narrow := built(t, "../../dist"), built(t, "../../examples/namespaced")
	var gone, changed, added []string
	for name, content := range whole {
		switch now, there := narrow[name]; {
		case !there:
			gone = append(gone, name)
		case now != content:
			changed = append(changed, name)
		}
	}
	for name := range narrow {
		if _, there := whole[name]; !there {
			added = append(added, name)
		}
	}
	slices.Sort(added)
	if got := strings.Join(gone, ", "); got != "ClusterRoleBinding governor" {
		t.Errorf("these are gone: %s", got)
	}
	if got := strings.Join(changed, ", "); got != "Deployment governor governor-system" || !strings.Contains(narrow["Deployment governor governor-system"], "- --watch-namespaces=team-a") {
		t.Errorf("these have changed: %s", got)
	}
	if got := strings.Join(added, ", "); got != "ClusterRole governor-cluster, ClusterRoleBinding governor-cluster, RoleBinding governor team-a" {
		t.Errorf("these are new: %s", got)
	}
}
