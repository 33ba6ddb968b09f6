package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Tool is a program outside the families: a main package of some module, at
// one version.
type Tool struct {
	Package string `json:"package"`
	Version string `json:"version"`
	// Output is the program's name, if it is not what go build calls it.
	Output string `json:"output,omitempty"`
}

// Validate says what is wrong with a tool, as far as that is known without
// asking the module proxy.
func (t Tool) Validate() error {
	if err := module.CheckImportPath(t.Package); err != nil {
		return fmt.Errorf("package %q: %w", t.Package, err)
	}
	if semver.Canonical(t.Version)+semver.Build(t.Version) != t.Version {
		return fmt.Errorf("version %q of %s: want one exact version, such as v1.2.3: what is built is kept under it", t.Version, t.Package)
	}
	if strings.ContainsAny(t.Output, `/\`) || t.Output == "." || t.Output == ".." {
		return fmt.Errorf("output %q of %s: want a file name", t.Output, t.Package)
	}
	return nil
}

// Name is what the program is called in the folder that Tools gives.
func (t Tool) Name() string {
	if t.Output != "" {
		return t.Output
	}
	return builtName(t.Package)
}

// builtName is what go build calls the program of a package.
func builtName(pkg string) string {
	prefix, _, ok := module.SplitPathVersion(pkg)
	if !ok || prefix == "" {
		return path.Base(pkg)
	}
	return path.Base(prefix)
}

// Tools builds programs that share one wrapper module, made for them, and
// gives the folder that holds them. Their dependencies are resolved when they
// are built first, and checked against the public checksum database only.
func (c Cache) Tools(ctx context.Context, tools ...Tool) (dir string, err error) {
	t, err := toolsTarget(tools)
	if err != nil {
		return "", err
	}
	dirs, err := c.build(ctx, []target{t})
	if err != nil {
		return "", err
	}
	return dirs[0], nil
}

func toolsTarget(tools []Tool) (target, error) {
	if len(tools) == 0 {
		return target{}, errors.New("no program to build")
	}
	wanted := []string{"get", "-tool"}
	names, rename := map[string]string{}, map[string]string{}
	var expect []string
	for _, t := range tools {
		if err := t.Validate(); err != nil {
			return target{}, err
		}
		for _, name := range []string{builtName(t.Package), t.Name()} {
			if other, taken := names[name]; taken && other != t.Package {
				return target{}, fmt.Errorf("%s and %s are both called %s: build them apart", other, t.Package, name)
			}
			names[name] = t.Package
		}
		if t.Name() != builtName(t.Package) {
			rename[builtName(t.Package)] = t.Name()
		}
		wanted = append(wanted, t.Package+"@"+t.Version)
		expect = append(expect, t.Name())
	}
	sum := sha256.Sum256([]byte(strings.Join(wanted, " ")))
	id := tools[0].Name() + "-" + hex.EncodeToString(sum[:])[:8]
	return target{
		name:    id,
		version: tools[0].Version,
		flags:   []string{"-buildvcs=false", withoutDWARF, "-ldflags=-s -w"},
		pattern: "tool",
		rename:  rename,
		expect:  expect,
		files:   map[string]string{"go.mod": "module governor.dev/localkube/" + id + "\n"},
		prepare: wanted,
	}, nil
}
