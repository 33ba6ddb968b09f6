package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const renew = "run go generate ./config"

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestInstallIsUpToDate(t *testing.T) {
	want, err := bundle("..")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read(t, "../../dist/install.yaml")); diff != "" {
		t.Errorf("dist/install.yaml is old, %s: %s", renew, diff)
	}
}

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	if testing.Short() {
		t.Skip("builds controller-gen")
	}
	dir := t.TempDir()
	cases := map[string]string{
		"crd":      "crd:maxDescLen=1000 paths=../../api/cache/... output:crd:dir=" + dir + "/crd",
		"crd/next": "crd:maxDescLen=300 paths=../../api/etcd/... output:crd:dir=" + dir + "/crd/next",
		"rbac":     "rbac:roleName=governor paths=../../cmd/governor output:rbac:dir=" + dir + "/rbac",
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			generate(t, args)
			same(t, filepath.Join(dir, name), filepath.Join("..", name))
		})
	}
}

func generate(t *testing.T, args string) {
	t.Helper()
	command := append([]string{"tool", "-modfile=../../tools/gen/go.mod", "controller-gen"}, strings.Fields(args)...)
	out, err := exec.CommandContext(t.Context(), "go", command...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func same(t *testing.T, fresh, kept string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(fresh, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing was generated: %v", err)
	}
	for _, f := range files {
		if diff := cmp.Diff(read(t, f), read(t, filepath.Join(kept, filepath.Base(f)))); diff != "" {
			t.Errorf("%s is old, %s: %s", filepath.Base(f), renew, diff)
		}
	}
}

// named are the kinds of which the operator may touch single objects only.
var named = map[string][]string{
	"secrets":                         {"governor-webhook-certificate"},
	"validatingwebhookconfigurations": {"governor"},
}

// The operator may do what it needs and nothing else: no wildcard, one Secret in its
// own namespace, one webhook configuration.
func TestRolesAreLeast(t *testing.T) {
	for _, doc := range strings.Split(read(t, "../rbac/role.yaml"), "---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if fault := excess(role.Kind, rule); fault != "" {
				t.Errorf("%s %s %s: %v", role.Kind, role.Name, fault, rule)
			}
		}
	}
}

func excess(kind string, rule rbacv1.PolicyRule) string {
	if strings.Contains(strings.Join(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), ""), "*") {
		return "has a wildcard"
	}
	for _, resource := range rule.Resources {
		if allowed, ok := named[resource]; ok && !slices.Equal(rule.ResourceNames, allowed) {
			return "is not limited to " + strings.Join(allowed, ", ")
		}
		if resource == "secrets" && kind != "Role" {
			return "reaches Secrets of other namespaces"
		}
	}
	return ""
}
