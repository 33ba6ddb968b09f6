package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Engine says where the engine comes from.
type Engine struct {
	// Version is that of the module github.com/governor-dev/governor.
	Version string
	// Directory of a working tree to use instead; empty for the published module.
	Directory string
}

// required is the go.mod of the project in dir with the engine in it: of its version, or of the working tree.
func (e Engine) required(dir, mod string) (string, error) {
	mod = strings.ReplaceAll(mod, "{{governor}}", e.Version)
	if e.Directory == "" {
		return mod, nil
	}
	raw, err := os.ReadFile(filepath.Join(e.Directory, "go.mod"))
	if err != nil || !strings.HasPrefix(string(raw), "module github.com/governor-dev/governor\n") {
		return "", fmt.Errorf("--engine is %q, which is no working tree of Governor: it has no go.mod of github.com/governor-dev/governor", e.Directory)
	}
	path, err := pathFrom(dir, e.Directory)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\nreplace github.com/governor-dev/governor => %s\n\nreplace github.com/governor-dev/governor/api => %s/api\n", mod, path, path), nil
}

// pathFrom is the path of the tree as the project in dir, which need not exist yet, says it in its go.mod. It is relative,
// so that both can be moved together and the project says nothing about the machine that it was made on. It is absolute
// where no relative path is right for everybody: across volumes, and where a symbolic link gives ".." two meanings.
func pathFrom(dir, tree string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	tree, err = filepath.Abs(tree)
	if err != nil {
		return "", err
	}
	path, err := filepath.Rel(dir, tree)
	resolved, otherErr := filepath.Rel(resolve(dir), resolve(tree))
	if err != nil || otherErr != nil || path != resolved {
		return tree, nil //nolint:nilerr // there is no relative path
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "..") {
		path = "./" + path // without it go.mod would name a module
	}
	return path, nil
}

// resolve is the absolute path without symbolic links, as far as it exists.
func resolve(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return target
	}
	return filepath.Join(resolve(filepath.Dir(path)), filepath.Base(path))
}
