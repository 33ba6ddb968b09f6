// Command pin renews the pins of the families in build/families.
//
//	go run ./build/pin                      # every family, at the versions it has
//	go run ./build/pin kubernetes@v1.37.2   # one family, at another version
//
// It resolves the family's requirements again from what its program packages
// need, and writes them and their checksums where localkube embeds them.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/governor-dev/governor/localkube/build"
)

// oldestGo is what a family asks of the Go command if no dependency asks more.
const oldestGo = "1.26.0"

func main() {
	wanted := os.Args[1:]
	if len(wanted) == 0 {
		wanted = build.FamilyNames()
	}
	for _, arg := range wanted {
		name, version, _ := strings.Cut(arg, "@")
		if err := pin(name, version); err != nil {
			fmt.Fprintf(os.Stderr, "pin: %s: %v\n", arg, err)
			os.Exit(1)
		}
	}
}

// pin renews one family; version "" is the one that it has.
func pin(name, version string) error {
	module, had, err := build.FamilyModule(name)
	if err != nil || module == "" {
		return err // a family without a module has nothing to pin
	}
	if version == "" {
		version = had
	}
	folder, err := familyFolder(name)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "pin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	w := wrapper{dir: tmp}
	if err := w.resolve(folder, module, version); err != nil {
		return err
	}
	fmt.Printf("%s %s → %s\n", name, had, version)
	return errors.Join(
		move(filepath.Join(tmp, "go.mod"), filepath.Join(folder, "mod")),
		move(filepath.Join(tmp, "go.sum"), filepath.Join(folder, "sum")))
}

func familyFolder(name string) (string, error) {
	root, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/governor-dev/governor/localkube/build").Output()
	if err != nil {
		return "", fmt.Errorf("run this in the localkube module: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "families", name), nil
}

func move(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

// wrapper is the wrapper module while it is being made.
type wrapper struct{ dir string }

// resolve makes go.mod and go.sum for the tools that the family has now.
func (w wrapper) resolve(folder, module, version string) error {
	old, err := os.ReadFile(filepath.Join(folder, "mod"))
	if err != nil {
		return err
	}
	mod, err := modfile.Parse("mod", old, nil)
	if err != nil {
		return err
	}
	wanted, err := w.requests(mod, folder, module, version)
	if err != nil {
		return err
	}
	replacements, err := w.replacements(module, version)
	if err != nil {
		return err
	}
	edit := []string{"mod", "edit", "-go=" + oldestGo}
	for _, steps := range [][]string{
		{"mod", "init", mod.Module.Mod.Path},
		append(edit, replacements...),
		append([]string{"get"}, wanted...),
		{"mod", "tidy"},
	} {
		if _, err := w.run(steps...); err != nil {
			return err
		}
	}
	return nil
}

// requests are go get's arguments: the family's programs, or its own main.
func (w wrapper) requests(mod *modfile.File, folder, module, version string) ([]string, error) {
	main, err := os.ReadFile(filepath.Join(folder, "main.go.txt"))
	if err == nil {
		return []string{module + "@" + version}, os.WriteFile(filepath.Join(w.dir, "main.go"), main, 0o644)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	args := []string{"-tool"}
	for _, tool := range mod.Tool {
		args = append(args, tool.Path+"@"+version)
	}
	return args, nil
}

// replacements stand in for those of the module's own go.mod that point into
// its repository, as Kubernetes' do: there the parts are published under
// their own names, at v0 of the same minor and patch version.
func (w wrapper) replacements(module, version string) ([]string, error) {
	out, err := w.run("mod", "download", "-json", module+"@"+version)
	if err != nil {
		return nil, err
	}
	var info struct{ GoMod string }
	if err := json.Unmarshal(out, &info); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(info.GoMod)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.ParseLax(info.GoMod, b, nil)
	if err != nil || module != "k8s.io/kubernetes" {
		return nil, err
	}
	var args []string
	part := strings.Replace(version, semver.Major(version), "v0", 1)
	for _, r := range mod.Require {
		if r.Mod.Version == "v0.0.0" {
			args = append(args, "-replace="+r.Mod.Path+"="+r.Mod.Path+"@"+part)
		}
	}
	return args, nil
}

func (w wrapper) run(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	return out, nil
}
