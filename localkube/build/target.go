package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// target is a wrapper module to build: a family, or one made for a recipe.
type target struct {
	name    string
	version string
	files   map[string]string // the wrapper module, by file name
	prepare []string          // a go command that completes the wrapper module
	pattern string            // what to build: "tool" or "."
	flags   []string
	rename  map[string]string
	expect  []string // programs that must come out, where their packages may have none
}

// key changes with whatever can change the programs.
func (t target) key(goVersion string) string {
	h := sha256.New()
	part := func(s string) { fmt.Fprintf(h, "%d:%s", len(s), s) }
	for _, name := range sortedKeys(t.files) {
		part(name)
		part(t.files[name])
	}
	for _, arg := range slices.Concat(t.flags, t.prepare) {
		part(arg)
	}
	for _, from := range sortedKeys(t.rename) {
		part(from)
		part(t.rename[from])
	}
	part(t.pattern)
	part(goVersion)
	part(runtime.GOARCH)
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func (t target) title() string {
	if t.version == "" {
		return t.name
	}
	return t.name + " " + t.version
}

// plan is where a target is built and kept on one machine.
type plan struct {
	target
	src, bin, log, lock string
	row                 int // in the progress display
}

// plan says where a target's programs belong.
func (c Cache) plan(t target, goVersion string) plan {
	name := t.name + "-"
	if t.version != "" {
		name += t.version + "-"
	}
	return plan{
		target: t,
		src:    filepath.Join(c.Dir, "src", t.name),
		bin:    filepath.Join(c.Dir, "bin", name+t.key(goVersion)),
		log:    filepath.Join(c.Dir, "log", t.name+".log"),
		lock:   filepath.Join(c.Dir, "lock", t.name),
	}
}

// built says whether the programs are there: a folder in bin is complete,
// because it gets its name when everything is in it.
func (p plan) built() bool {
	info, err := os.Stat(p.bin)
	return err == nil && info.IsDir()
}

// writeSource writes the wrapper module. Files that hold what they should are
// left alone, so that the go command's own caches stay good.
func (p plan) writeSource() error {
	if err := makeDir(p.src); err != nil {
		return err
	}
	for _, name := range sortedKeys(p.files) {
		path := filepath.Join(p.src, name)
		if old, err := os.ReadFile(path); err == nil && string(old) == p.files[name] {
			continue
		}
		if err := os.WriteFile(path, []byte(p.files[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// install gives the programs their names and the folder its own.
func (p plan) install(tmp string) error {
	for _, from := range sortedKeys(p.rename) {
		if err := os.Rename(filepath.Join(tmp, from), filepath.Join(tmp, p.rename[from])); err != nil {
			return fmt.Errorf("%s builds no program %s: %w", p.name, from, err)
		}
	}
	for _, name := range p.expect {
		if _, err := os.Stat(filepath.Join(tmp, name)); err != nil {
			return fmt.Errorf("no program %s came out: its package is not a main package", name)
		}
	}
	if err := makeDir(filepath.Dir(p.bin)); err != nil {
		return err
	}
	err := os.Rename(tmp, p.bin)
	if errors.Is(err, os.ErrExist) && p.built() {
		return nil
	}
	return err
}
