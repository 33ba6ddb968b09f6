// Package scaffold writes operator projects that compile, pass their tests and run: `governor new`, and another kind in
// one of them: `governor new kind`.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Templates are filled by replacing names, and not by text/template: with that the linker keeps every method of every
// type in the operator's binary.
//
//go:embed templates
var templates embed.FS

// Project is what is asked of `governor new`. It is kept in project.yaml.
type Project struct {
	// Name is that of the program, and of all that is installed: a DNS label.
	Name string `json:"name"`
	// Module is the Go module's path.
	Module string `json:"module"`
	// Group and Version are those of its API, e.g. cache.example.com and v1alpha1.
	Group   string `json:"group"`
	Version string `json:"version"`
	// Kinds are those that it has.
	Kinds []Kind `json:"kinds"`
}

// Kind is one kind of a project.
type Kind struct {
	// Name is the kind, e.g. Memcached.
	Name string `json:"name"`
	// Plural is its name in URLs; empty means what English makes of it.
	Plural string `json:"plural"`
}

// projectFile is what makes a directory a project.
const projectFile = "project.yaml"

// files are those of a project, by template.
var files = map[string]string{
	"main.go.tmpl": "main.go", "main_test.go.tmpl": "main_test.go", "group.go.tmpl": "api/{{version}}/group.go",
	"manager.yaml.tmpl": "config/manager.yaml", "image.yaml.tmpl": "config/image.yaml", "Makefile.tmpl": "Makefile",
	"Dockerfile.tmpl": "Dockerfile", "ci.yaml.tmpl": ".github/workflows/ci.yaml", "README.md.tmpl": "README.md",
	"gitignore.tmpl": ".gitignore", "go.mod.tmpl": "go.mod",
}

// kindFiles are those of a kind.
var kindFiles = map[string]string{
	"types.go.tmpl": "api/{{version}}/{{kind}}.go", "planner.go.tmpl": "{{kind}}/planner.go", "planner_test.go.tmpl": "{{kind}}/planner_test.go",
	"driver.go.tmpl": "{{kind}}/driver/driver.go", "object.go.tmpl": "api/{{version}}/{{kind}}_object.go", "kind_test.go.tmpl": "{{kind}}_test.go",
	"crd.yaml.tmpl": "config/crd/{{group}}_{{plural}}.yaml", "sample.yaml.tmpl": "config/samples/{{kind}}.yaml",
}

// New writes the project into the directory, which must not exist or be empty, and returns the paths of what it wrote.
func New(dir string, p Project, e Engine) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := vacant(dir); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for template, path := range files {
		all[p.fill(path)] = p.fill(read(template))
	}
	require, err := e.required(dir, all["go.mod"])
	if err != nil {
		return nil, err
	}
	all["go.mod"] = require
	all["main.go"] = p.registered(all["main.go"], p.Kinds)
	for _, k := range p.Kinds {
		p.addKind(all, k)
	}
	all["api/"+p.Version+"/zz_generated.deepcopy.go"] = p.copies(p.fill(read("deepcopy_head.go.tmpl")), p.Kinds)
	if all["config/rbac/role.yaml"], err = p.roles(p.fill(read("role.yaml.tmpl")), p.Kinds); err != nil {
		return nil, err
	}
	all[projectFile] = p.written()
	if all["install.yaml"], err = p.install(dir, all); err != nil {
		return nil, err
	}
	return write(dir, all)
}

// Add writes another kind into the project in the directory, and returns the paths of what it wrote.
func Add(dir string, k Kind) ([]string, error) {
	p, err := load(dir)
	if err != nil {
		return nil, err
	}
	k = k.complete()
	if slices.ContainsFunc(p.Kinds, func(is Kind) bool { return is.lower() == k.lower() || is.Plural == k.Plural }) {
		return nil, fmt.Errorf("this project has the kind %s, or one with the same plural %q, already", k.Name, k.Plural)
	}
	p.Kinds = append(p.Kinds, k)
	if err := p.check(); err != nil {
		return nil, err
	}
	all := map[string]string{}
	p.addKind(all, k)
	for path := range all {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
			return nil, fmt.Errorf("%s exists already; nothing was written", path)
		}
	}
	if err := p.edit(dir, k, all); err != nil {
		return nil, err
	}
	return write(dir, all)
}

// addKind adds the files of one kind.
func (p Project) addKind(all map[string]string, k Kind) {
	for template, path := range kindFiles {
		all[p.fillKind(path, k)] = p.fillKind(read(template), k)
	}
}

// written is what makes the directory a project.
func (p Project) written() string {
	raw, _ := yaml.Marshal(p) // of strings: it cannot fail
	return "# What `governor new` made; `governor new kind` reads it.\n" + string(raw)
}

// install is one file of all that is applied: definitions first.
func (p Project) install(dir string, all map[string]string) (string, error) {
	out := "# Made by make generate.\n"
	var paths []string
	for _, k := range p.Kinds {
		paths = append(paths, p.fillKind(kindFiles["crd.yaml.tmpl"], k))
	}
	slices.Sort(paths)
	for _, path := range append(paths, "config/manager.yaml", "config/rbac/role.yaml") {
		content, ok := all[path]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(dir, path)) //nolint:gosec // of the author's own project
			if err != nil {
				return "", err
			}
			content = string(raw)
		}
		out += "---\n" + strings.TrimPrefix(content, "---\n")
	}
	return out, nil
}

// registered is the program with a line for each kind.
func (p Project) registered(program string, kinds []Kind) string {
	for _, k := range kinds {
		program = strings.Replace(program, "\t// governor:imports\n", p.fillKind("\t{{kind}} \"{{module}}/{{kind}}/driver\"\n\t// governor:imports\n", k), 1)
		program = strings.Replace(program, "\t\t// governor:register\n", p.fillKind("\t\tengine.Register(op, {{kind}}.App()),\n\t\t// governor:register\n", k), 1)
	}
	return program
}

func (p Project) fill(s string) string {
	return strings.NewReplacer("{{name}}", p.Name, "{{module}}", p.Module, "{{group}}", p.Group, "{{version}}", p.Version,
		"{{resources}}", p.resources(), "{{image}}", p.Group+"/"+p.Name+":v0.1.0").Replace(s)
}

func (p Project) fillKind(s string, k Kind) string {
	return p.fill(strings.NewReplacer("{{Kind}}", k.Name, "{{kind}}", k.lower(), "{{plural}}", k.Plural).Replace(s))
}

// resources are those that the webhooks are asked about.
func (p Project) resources() string {
	names := make([]string, len(p.Kinds))
	for i, k := range p.Kinds {
		names[i] = k.Plural
	}
	return strings.Join(names, `", "`)
}

func read(template string) string {
	raw, err := templates.ReadFile("templates/" + template)
	if err != nil {
		panic(err) // it is in this binary
	}
	return string(raw)
}

func load(dir string) (Project, error) {
	var p Project
	raw, err := os.ReadFile(filepath.Join(dir, projectFile)) //nolint:gosec // of the author's own project
	if errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("there is no %s in %s: run it in a project that governor new has made", projectFile, dir)
	}
	if err != nil {
		return p, err
	}
	if err := yaml.UnmarshalStrict(raw, &p); err != nil {
		return p, fmt.Errorf("%s: %w", projectFile, err)
	}
	return p, nil
}

// vacant returns an error if something is in the directory.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot use %s for a new project: %w", dir, err)
	case len(entries) > 0:
		return fmt.Errorf("the directory %s exists and is not empty: name another with --dir, or remove it", dir)
	}
	return nil
}

func write(dir string, all map[string]string) ([]string, error) {
	var paths []string
	for path, content := range all {
		if strings.HasSuffix(path, ".go") {
			tidy, err := format.Source([]byte(content)) // how code is aligned depends on the names in it
			if err != nil {
				return nil, fmt.Errorf("%s would not be Go: %w", path, err)
			}
			content = string(tidy)
		}
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil { //nolint:gosec // sources are for everybody
			return nil, err
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil { //nolint:gosec // sources are for everybody
			return nil, err
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, nil
}
