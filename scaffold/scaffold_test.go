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

// goFlags are those of this test, so that what is compiled already is used, and -mod=mod.
func goFlags() string { return strings.TrimSpace(os.Getenv("GOFLAGS") + " -mod=mod") }

// runMake runs make in the project, with what this machine has of modules.
func runMake(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS="+goFlags())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
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
	said := runMake(t, dir, "test")
	if skipped := strings.Contains(said, "SKIP: nothing was tested against a real API server"); skipped != (os.Getenv("KUBEBUILDER_ASSETS") == "") {
		t.Errorf("it skips the real API server: %v\n%s", skipped, said)
	}
	if compiled := runMake(t, dir, "build", "GOFLAGS="+goFlags()+" -v"); strings.Contains(compiled, "k8s.io/") {
		t.Errorf("make build compiles again what make test has compiled:\n%s", compiled)
	}
	regenerated(t, dir)
}

// The image goes to the cluster that kubectl talks to, or to none of localkube's.
func TestTheImageGoesToTheCurrentCluster(t *testing.T) {
	bin, dir := t.TempDir(), project(t)
	kubectl, err := exec.LookPath(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"))
	if err != nil {
		t.Skip("needs kubectl: set KUBEBUILDER_ASSETS")
	}
	must(t, os.Symlink(kubectl, filepath.Join(bin, "kubectl")))
	must(t, os.WriteFile(filepath.Join(bin, "localkube"), nil, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "go.sum"), nil, 0o600))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", filepath.Join(bin, "kubeconfig"))
	for cluster, want := range map[string]string{
		"localkube-mine": "localkube --name mine image build config/image.yaml --load", "kind-kind": "docker build -t cache.example.com/pond:v0.1.0",
	} {
		config := "kind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: " + cluster + "}}]\nclusters: [{name: " + cluster + ", cluster: {server: 'https://x'}}]\n"
		must(t, os.WriteFile(filepath.Join(bin, "kubeconfig"), []byte(config), 0o600))
		if said := runMake(t, dir, "-n", "image"); !strings.Contains(said, want) {
			t.Errorf("for %s make image would not do %q but\n%s", cluster, want, said)
		}
	}
	if said := runMake(t, dir, "-n", "image", "LOCALKUBE_FLAGS=--name other"); !strings.Contains(said, "--name other image build") {
		t.Errorf("LOCALKUBE_FLAGS is not obeyed:\n%s", said)
	}
}

// regenerated: what is generated from the code is what is there.
func regenerated(t *testing.T, dir string) {
	t.Helper()
	generated, install := t.TempDir(), read(t, dir, "install.yaml")
	if runMake(t, dir, "install.yaml"); read(t, dir, "install.yaml") != install {
		t.Errorf("make generate would change install.yaml: %s", cmp.Diff(install, read(t, dir, "install.yaml")))
	}
	generator := []string{"tool", "-modfile=" + filepath.Join(root(t), "tools/gen/go.mod"), "controller-gen"}
	cmd := exec.CommandContext(t.Context(), "go", append(generator, "object", "crd", "rbac:roleName=pond", "paths=./...",
		"output:object:dir="+generated, "output:crd:dir="+generated, "output:rbac:dir="+generated)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for fresh, is := range map[string]string{
		"cache.example.com_memcacheds.yaml": "config/crd/cache.example.com_memcacheds.yaml",
		"cache.example.com_berries.yaml":    "config/crd/cache.example.com_berries.yaml",
		"role.yaml":                         "config/rbac/role.yaml",
		"zz_generated.deepcopy.go":          "api/v1alpha1/zz_generated.deepcopy.go",
	} {
		if diff := cmp.Diff(read(t, generated, fresh), read(t, dir, is)); diff != "" {
			t.Errorf("make generate would change %s: %s", is, diff)
		}
	}
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

// The classic operator, as an author has to know it: kind, judgement and contact with the world, with every comment and
// empty line. The rest is made once and not touched again.
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
	if guide := strings.Join(strings.Fields(read(t, "../docs/authoring/walk.md")), " "); lines > 150 || !strings.Contains(guide, said) {
		t.Errorf("it has %s; at most 150 are short, and docs/authoring/walk.md says how many there are", said)
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
		"Import":  {func(p *scaffold.Project) { p.Kinds[0].Name = "Rollout" }, `cannot be called "rollout"`},
		"Long": {func(p *scaffold.Project) {
			p.Name, p.Kinds[0].Name = strings.Repeat("a", 40), "WithQuiteALongKindBehindIt"
		},
			"a label has at most 63 characters"},
		"Made":   {func(p *scaffold.Project) { p.Kinds[0].Name = "FrogList" }, "end with List"},
		"Plural": {func(p *scaffold.Project) { p.Kinds[0].Plural = "Frogs!" }, `--plural is "Frogs!"`},
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

// What the author has made of the first kind stays when another is added: deep copies of new fields, and rights.
func TestAnotherKindLeavesWhatWasEdited(t *testing.T) {
	dir := project(t)
	const copies, role = "api/v1alpha1/zz_generated.deepcopy.go", "config/rbac/role.yaml"
	edit(t, filepath.Join(dir, copies), "\tout.Spec = in.Spec\n", "\tin.Spec.DeepCopyInto(&out.Spec)\n")
	edit(t, filepath.Join(dir, role), "kind: ClusterRole\nmetadata:\n  name: pond\nrules:\n",
		"kind: ClusterRole\nmetadata:\n  name: pond\nrules:\n- apiGroups:\n  - batch\n  resources:\n  - jobs\n  verbs:\n  - get\n")
	_, err := scaffold.Add(dir, scaffold.Kind{Name: "Berry"})
	must(t, err)
	for path, want := range map[string]string{
		copies: "\tin.Spec.DeepCopyInto(&out.Spec)\n", role: "  - jobs\n", "install.yaml": "  - jobs\n",
	} {
		if !strings.Contains(read(t, dir, path), want) {
			t.Errorf("%s has lost %q", path, want)
		}
	}
	for path, want := range map[string]string{copies: "func (in *Berry) DeepCopy()", role: "  - berries/status\n"} {
		if strings.Count(read(t, dir, path), want) != 1 {
			t.Errorf("%s does not have %q once", path, want)
		}
	}
}

// edit replaces what is in the file once.
func edit(t *testing.T, path, before, after string) {
	t.Helper()
	is := read(t, path)
	if strings.Count(is, before) != 1 {
		t.Fatalf("%s has %q %d times", path, before, strings.Count(is, before))
	}
	must(t, os.WriteFile(path, []byte(strings.Replace(is, before, after, 1)), 0o600))
}

// A working tree is named from where the command is run, and go.mod is elsewhere: it has the relative path, unless a
// symbolic link on the way gives ".." two meanings.
func TestEngineOfAWorkingTree(t *testing.T) {
	home := t.TempDir()
	link := filepath.Join(t.TempDir(), "deep", "link")
	must(t, os.MkdirAll(filepath.Dir(link), 0o750))
	must(t, os.Symlink(home, link))
	for dir, isRelative := range map[string]bool{filepath.Join(home, "a", "pond"): true, filepath.Join(link, "b", "pond"): false} {
		_, err := scaffold.New(dir, pond(), scaffold.Engine{Version: "v0.1.0", Directory: ".."})
		must(t, err)
		_, path, _ := strings.Cut(read(t, dir, "go.mod"), "replace github.com/governor-dev/governor => ")
		path, _, _ = strings.Cut(path, "\n")
		if isRelative != strings.HasPrefix(path, "../") {
			t.Errorf("go.mod in %s has the path %q", dir, path)
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if path != root(t) {
			t.Errorf("go.mod in %s leads to %s, want %s", dir, path, root(t))
		}
	}
	_, err := scaffold.New(filepath.Join(t.TempDir(), "pond"), pond(), scaffold.Engine{Version: "v0.1.0", Directory: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "is no working tree of Governor") {
		t.Errorf("a directory without an engine: %v", err)
	}
}
