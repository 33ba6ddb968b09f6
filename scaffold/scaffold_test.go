package scaffold_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/scaffold"
)

func pond() scaffold.Project {
	return scaffold.Project{
		Name: "pond", Module: "example.com/pond", Group: "cache.example.com", Version: "v1alpha1",
		Kinds: []scaffold.Kind{{Name: "Memcached"}},
	}
}

// root is the working tree that projects are built with.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	must(t, err)
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return string(raw)
}

// project writes a project and returns its directory.
func project(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pond")
	_, err := scaffold.New(dir, pond(), scaffold.Engine{Version: "v0.1.0", Directory: root(t)})
	must(t, err)
	return dir
}

// run runs a command in the project, with what this machine has of modules.
func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// A project of two kinds compiles, and all its tests pass: with KUBEBUILDER_ASSETS against a real API server, too.
func TestTheProjectIsGreen(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a project")
	}
	dir := project(t)
	_, err := scaffold.Add(dir, scaffold.Kind{Name: "Berry"})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "go.sum"), []byte(read(t, "../go.sum")), 0o600))
	run(t, dir, "go", "vet", "./...")
	run(t, dir, "go", "test", "./...")
	regenerated(t, dir)
}

// regenerated: what is generated from the code is what is there.
func regenerated(t *testing.T, dir string) {
	t.Helper()
	fresh := t.TempDir()
	generator := []string{"tool", "-modfile=" + filepath.Join(root(t), "tools/gen/go.mod"), "controller-gen"}
	cmd := exec.CommandContext(t.Context(), "go", append(generator, "crd", "rbac:roleName=pond", "paths=./...",
		"output:crd:dir="+fresh, "output:rbac:dir="+fresh)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"cache.example.com_memcacheds.yaml", "cache.example.com_berries.yaml"} {
		if diff := cmp.Diff(read(t, fresh, name), read(t, dir, "config/crd", name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff(rights(t, read(t, fresh, "role.yaml")), rights(t, read(t, dir, "config/rbac/role.yaml"))); diff != "" {
		t.Errorf("the roles are others: %s", diff)
	}
}

// rights are those of a file of roles, each with one resource, sorted.
func rights(t *testing.T, manifest string) (all []string) {
	t.Helper()
	for _, doc := range strings.Split(manifest, "---\n") {
		var role rbacv1.ClusterRole
		must(t, yaml.Unmarshal([]byte(doc), &role))
		for _, r := range role.Rules {
			for _, resource := range r.Resources {
				all = append(all, strings.Join([]string{role.Kind, r.APIGroups[0], resource, strings.Join(r.ResourceNames, ","), strings.Join(r.Verbs, ",")}, " "))
			}
		}
	}
	slices.Sort(all)
	return all
}

var token = regexp.MustCompile(`\{\{[a-zA-Z]+\}\}`)

func TestInstallHasBothKinds(t *testing.T) {
	dir := project(t)
	_, err := scaffold.Add(dir, scaffold.Kind{Name: "Berry"})
	must(t, err)
	install := read(t, dir, "install.yaml")
	for _, want := range []string{
		"name: memcacheds.cache.example.com", "name: berries.cache.example.com", `resources: ["memcacheds", "berries"]`,
		"- berries/status", "image: cache.example.com/pond:v0.1.0", "- pond-webhook-certificate",
	} {
		if !strings.Contains(install, want) {
			t.Errorf("install.yaml has no %q", want)
		}
	}
	for _, doc := range strings.Split(install, "---\n") {
		if err := yaml.Unmarshal([]byte(doc), &map[string]any{}); err != nil {
			t.Errorf("%v in %s", err, doc)
		}
	}
	if left := token.FindString(install + read(t, dir, "main.go") + read(t, dir, "berry/planner.go")); left != "" {
		t.Errorf("%s was not filled in", left)
	}
}

// The classic operator, as an author has to know it: kind, judgement and contact with the world. The rest is made once
// and not touched again.
// The engine keeps what was declared: without the right to it a turn fails on a cluster,
// and on no API server that lets everybody do everything.
func TestRolesAllowWhatTheEngineKeeps(t *testing.T) {
	const needed = `(?s)- controllerrevisions\n  verbs:\n  - create\n  - delete\n  - list\n  - patch\n`
	roles := map[string]string{
		"governor": read(t, "..", "config", "rbac", "role.yaml"),
		"factory":  read(t, "..", "examples", "chocolate-factory", "config", "rbac", "role.yaml"),
		"scaffold": read(t, "templates", "role.yaml.tmpl"),
	}
	for name, role := range roles {
		if !regexp.MustCompile(needed).MatchString(role) {
			t.Errorf("the role of %s does not let it keep revisions", name)
		}
	}
}

func TestTheClassicOperatorIsShort(t *testing.T) {
	dir, lines, code := project(t), 0, 0
	for _, path := range []string{"api/v1alpha1/memcached.go", "memcached/planner.go", "memcached/driver/driver.go"} {
		for line := range strings.Lines(read(t, dir, path)) {
			lines++
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				code++
			}
		}
	}
	said := fmt.Sprintf("%d lines, %d of them code", lines, code)
	if guide := strings.Join(strings.Fields(read(t, "../docs/authoring/README.md")), " "); code > 150 || !strings.Contains(guide, said) {
		t.Errorf("it has %s; at most 150 are short, and docs/authoring says how many there are", said)
	}
}

func TestBadNamesAreRefused(t *testing.T) {
	cases := map[string]struct {
		spoil func(*scaffold.Project)
		want  string
	}{
		"Name":    {func(p *scaffold.Project) { p.Name = "My Pond" }, `NAME is "My Pond"`},
		"Module":  {func(p *scaffold.Project) { p.Module = "my pond" }, `--module is "my pond"`},
		"Group":   {func(p *scaffold.Project) { p.Group = "cache" }, `--group is "cache"`},
		"Version": {func(p *scaffold.Project) { p.Version = "1.0" }, `--version is "1.0"`},
		"NoKind":  {func(p *scaffold.Project) { p.Kinds = nil }, "--kind is empty"},
		"Kind":    {func(p *scaffold.Project) { p.Kinds[0].Name = "memcached" }, `the kind is "memcached"`},
		"Keyword": {func(p *scaffold.Project) { p.Kinds[0].Name = "Func" }, `cannot be called "func"`},
		"Folder":  {func(p *scaffold.Project) { p.Kinds[0].Name = "Api" }, `cannot be called "api"`},
		"Made":    {func(p *scaffold.Project) { p.Kinds[0].Name = "FrogList" }, "end with List"},
		"Plural":  {func(p *scaffold.Project) { p.Kinds[0].Plural = "Frogs!" }, `--plural is "Frogs!"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir, p := filepath.Join(t.TempDir(), "p"), pond()
			c.spoil(&p)
			_, err := scaffold.New(dir, p, scaffold.Engine{Version: "v0.1.0"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := project(t)
	if _, err := scaffold.New(dir, pond(), scaffold.Engine{}); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a project over another: %v", err)
	}
	if _, err := scaffold.Add(dir, scaffold.Kind{Name: "Memcached"}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a kind over another: %v", err)
	}
	if _, err := scaffold.Add(t.TempDir(), scaffold.Kind{Name: "Frog"}); err == nil || !strings.Contains(err.Error(), "no project.yaml") {
		t.Errorf("a kind in no project: %v", err)
	}
	must(t, os.MkdirAll(filepath.Join(dir, "frog"), 0o750))
	must(t, os.WriteFile(filepath.Join(dir, "frog/planner.go"), []byte("mine"), 0o600))
	if _, err := scaffold.Add(dir, scaffold.Kind{Name: "Frog"}); err == nil || read(t, dir, "frog/planner.go") != "mine" {
		t.Errorf("a file that is there: %v", err)
	}
}

func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{"Frog": "frogs", "Berry": "berries", "Fox": "foxes", "Bus": "buses", "Day": "days", "Branch": "branches"} {
		dir, p := filepath.Join(t.TempDir(), "p"), pond()
		p.Kinds[0].Name = kind
		written, err := scaffold.New(dir, p, scaffold.Engine{Version: "v0.1.0"})
		if err != nil || !slices.Contains(written, "config/crd/cache.example.com_"+want+".yaml") {
			t.Errorf("%s: %v, %v", kind, err, written)
		}
	}
}

func TestCommandLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pond")
	var out bytes.Buffer
	cmd := scaffold.Command("v0.1.0")
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"pond", "--dir", dir, "--group", "cache.example.com", "--kind", "Memcached"})
	must(t, cmd.Execute())
	if !strings.Contains(out.String(), "make install && kubectl apply -f config/samples") || !strings.Contains(read(t, dir, "go.mod"), "governor v0.1.0") {
		t.Errorf("it says %s", &out)
	}
	cmd = scaffold.Command("v0.1.0")
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"kind", "Berry", "--dir", dir})
	must(t, cmd.Execute())
	if !strings.Contains(read(t, dir, "main.go"), "engine.Register(op, berry.App()),") {
		t.Error("the program does not know the new kind")
	}
}
