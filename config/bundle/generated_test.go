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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	generate(t, "crd:maxDescLen=1000 paths=../../api/cache/... output:crd:dir="+dir+"/crd")
	generate(t, "crd:maxDescLen=200 paths=../../api/app/... output:crd:dir="+dir+"/crd")
	generate(t, "crd:maxDescLen=300 paths=../../api/etcd/... output:crd:dir="+dir+"/crd")
	generate(t, "crd:maxDescLen=1000 paths=../../api/governor/... output:crd:dir="+dir+"/crd")
	generate(t, "rbac:roleName=governor paths=../../cmd/governor output:rbac:dir="+dir+"/rbac")
	for _, name := range []string{"crd", "rbac"} {
		same(t, filepath.Join(dir, name), filepath.Join("..", name))
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
	names := files(t, fresh)
	if diff := cmp.Diff(names, files(t, kept)); diff != "" || len(names) == 0 {
		t.Errorf("%s: other files are generated: %s", kept, diff)
	}
	for _, name := range names {
		if diff := cmp.Diff(read(t, filepath.Join(fresh, name)), read(t, filepath.Join(kept, name))); diff != "" {
			t.Errorf("%s is old, %s: %s", name, renew, diff)
		}
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	return names
}

// named are the objects that the operator may change of some kinds, and no other.
var named = map[string][]string{
	"ClusterRole validatingwebhookconfigurations": {"governor"},
	"ClusterRole mutatingwebhookconfigurations":   {"governor"},
	"ClusterRole customresourcedefinitions":       {"etcdclusters.etcd.database.coreos.com"},
	"Role secrets":                                {"governor-webhook-certificate"},
}

// A person must agree to what is added here: these are all kinds that the operator
// may change without a name. Secrets are among them, for certificates are minted
// where the clusters are: docs/adr/0008-secrets-everywhere.md. Pods are among them, for
// pod sets are made of nothing else: docs/adr/0014-pods-by-number.md. Reviews are questions
// to the API server, about who reads metrics; they are created and change nothing.
var changed = map[string][]string{
	"ClusterRole": {
		"approvals/status", "configmaps", "controllerrevisions", "deployments", "etcdclusters", "etcdclusters/finalizers", "etcdclusters/status", "events",
		"memcacheds", "memcacheds/finalizers", "memcacheds/status", "networkpolicies", "operationpolicies/status", "persistentvolumeclaims", "poddisruptionbudgets",
		"pods", "pods/eviction", "podsets", "podsets/finalizers", "podsets/status", "secrets", "services", "statefulsets",
		"subjectaccessreviews", "tokenreviews",
	},
	"Role": {"events", "leases"},
}

// What it may read beyond that.
var seen = []string{"approvals", "customresourcedefinitions", "namespaces", "nodes", "operationpolicies", "persistentvolumes", "storageclasses"}

// The operator may do what it needs and nothing else.
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
		allowed, limited := named[kind+" "+resource]
		changes := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch", "bypass"}, verb) })
		switch {
		case !changes && slices.Contains(seen, resource), slices.Contains(changed[kind], resource):
		case !limited:
			return "reaches " + resource
		case !slices.Equal(rule.ResourceNames, allowed):
			return "is not limited to " + strings.Join(allowed, ", ")
		}
		if resource == "pods" && slices.Contains(rule.Verbs, "update") {
			return "does more to pods than making, labelling and ending them"
		}
	}
	return ""
}

func TestExcessIsNoticed(t *testing.T) {
	rule := func(resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	cases := map[string]struct {
		kind string
		rule rbacv1.PolicyRule
		want string
	}{
		"wildcard":   {"Role", rule("leases", "*"), "has a wildcard"},
		"definition": {"ClusterRole", rule("customresourcedefinitions", "patch"), "is not limited to etcdclusters.etcd.database.coreos.com"},
		"another":    {"ClusterRole", rule("validatingwebhookconfigurations", "patch", "theirs"), "is not limited to governor"},
		"own":        {"Role", rule("secrets", "get"), "is not limited to governor-webhook-certificate"},
		"node":       {"ClusterRole", rule("nodes", "patch"), "reaches nodes"},
		"roles":      {"ClusterRole", rule("clusterroles", "bind"), "reaches clusterroles"},
		"exec":       {"ClusterRole", rule("pods/exec", "create"), "reaches pods/exec"},
		"pods":       {"ClusterRole", rule("pods", "update"), "does more to pods than making, labelling and ending them"},
		"kinds":      {"ClusterRole", rule("storageclasses", "patch"), "reaches storageclasses"},
		"read":       {"ClusterRole", rule("customresourcedefinitions", "get"), ""},
		"secrets":    {"ClusterRole", rule("secrets", "patch"), ""},
	}
	for name, c := range cases {
		if got := excess(c.kind, c.rule); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Definitions of several versions say who converts, and leave the caBundle to the
// operator: an install over another must not take it away.
func TestDefinitionsSayWhoConverts(t *testing.T) {
	var converted int
	for _, doc := range strings.Split(read(t, "../../dist/install.yaml"), "---\n") {
		var d apiextensionsv1.CustomResourceDefinition
		if !strings.Contains(doc, "\nkind: CustomResourceDefinition\n") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(doc), &d); err != nil {
			t.Fatal(err)
		}
		if (d.Spec.Conversion != nil) != (len(d.Spec.Versions) > 1) {
			t.Errorf("%s has %d versions and the conversion %v", d.Name, len(d.Spec.Versions), d.Spec.Conversion)
		}
		if c := d.Spec.Conversion; c != nil {
			converted++
			if c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook.ClientConfig.Service == nil || c.Webhook.ClientConfig.CABundle != nil {
				t.Errorf("%s: %+v", d.Name, c)
			}
		}
	}
	if converted != 1 {
		t.Errorf("%d definitions are converted", converted)
	}
}
