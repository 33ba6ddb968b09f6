// Package build makes the programs of a Kubernetes cluster from Go modules.
//
// Programs come in families: those that one wrapper module builds together.
// Every family's go.mod and go.sum are embedded here, so what is built is
// pinned down to the checksum of every dependency, and families cannot move
// each other's requirements. Results stay in a cache folder; a second run
// builds only what is missing or has changed.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Cache is the folder where programs are built and kept.
type Cache struct {
	Dir string
	Out io.Writer // progress; live where it is a terminal, nothing where nil
}

// DefaultCache is localkube's folder in GOVERNOR_CACHE, or where that is not
// set, in the user's cache folder, and it reports to standard error.
func DefaultCache() (Cache, error) {
	root := os.Getenv("GOVERNOR_CACHE")
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return Cache{}, fmt.Errorf("no folder for the cache: %w; set GOVERNOR_CACHE", err)
		}
		root = filepath.Join(user, "governor")
	}
	dir, err := filepath.Abs(filepath.Join(root, "localkube"))
	return Cache{Dir: dir, Out: os.Stderr}, err
}

// Binaries are built programs, by name.
type Binaries struct{ paths map[string]string }

// Path is where a program is. It panics on a name that was not built: names
// are constants of the calling code.
func (b Binaries) Path(name string) string {
	path, ok := b.paths[name]
	if !ok {
		panic(fmt.Sprintf("localkube builds no program %q", name))
	}
	return path
}

// components are the families that a cluster runs on, slowest first.
var components = []string{"kubernetes", "containerd", "etcd", "coredns", "pause"}

// Components builds what a cluster needs: Kubernetes, containerd, etcd,
// CoreDNS and pause.
func (c Cache) Components(ctx context.Context) (Binaries, error) {
	dirs, err := c.Families(ctx, components...)
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{paths: map[string]string{}}
	for _, dir := range dirs {
		if err := b.add(dir); err != nil {
			return Binaries{}, err
		}
	}
	return b, nil
}

func (b Binaries) add(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		b.paths[e.Name()] = filepath.Join(dir, e.Name())
	}
	return err
}

// Family builds one family and gives the folder that holds its programs.
func (c Cache) Family(ctx context.Context, name string) (dir string, err error) {
	dirs, err := c.Families(ctx, name)
	if err != nil {
		return "", err
	}
	return dirs[0], nil
}

// Families builds several families, compiling one while the next is being
// downloaded, and gives the folder of each in the order asked for.
func (c Cache) Families(ctx context.Context, names ...string) ([]string, error) {
	targets := make([]target, len(names))
	for i, name := range names {
		f, err := familyNamed(name)
		if err != nil {
			return nil, err
		}
		targets[i] = f.target()
	}
	return c.build(ctx, targets)
}

// EnvtestAssets gives a folder with etcd, kube-apiserver and kubectl, which is
// what KUBEBUILDER_ASSETS is to name for tests against a real API server.
func (c Cache) EnvtestAssets(ctx context.Context) (dir string, err error) {
	dirs, err := c.Families(ctx, "kubernetes", "etcd")
	if err != nil {
		return "", err
	}
	dir = filepath.Join(c.Dir, "envtest", filepath.Base(dirs[0])+"-"+filepath.Base(dirs[1]))
	for name, from := range map[string]string{"kube-apiserver": dirs[0], "kubectl": dirs[0], "etcd": dirs[1]} {
		if err := link(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func link(target, at string) error {
	if err := makeDir(filepath.Dir(at)); err != nil {
		return err
	}
	if err := os.Symlink(target, at); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// makeDir makes a folder of the cache.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("the cache cannot be written: %w; make it writable or set GOVERNOR_CACHE to a folder that is", err)
	}
	return nil
}
