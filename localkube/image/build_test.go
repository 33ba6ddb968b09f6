package image_test

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/governor-dev/governor/localkube/build"
	"github.com/governor-dev/governor/localkube/image"
)

func TestBuildsPause(t *testing.T) {
	recipe := load(t, "pause")
	first := buildIn(t, build.Cache{Dir: t.TempDir()}, recipe)
	refs, err := image.References(first)
	if err != nil || !slices.Equal(refs, []string{"registry.k8s.io/pause:3.10"}) {
		t.Fatalf("References: %v, %v", refs, err)
	}
	config := configOf(t, first)
	if config.User != "65535:65535" || !slices.Equal(config.Entrypoint, []string{"/pause"}) {
		t.Errorf("config: user %q, entrypoint %q", config.User, config.Entrypoint)
	}
	h := headers(t, first)["pause"]
	if h == nil || h.Mode != 0o755 || h.Uid != 0 || !h.ModTime.IsZero() && h.ModTime.Unix() != 0 {
		t.Errorf("/pause: %+v", h)
	}
}

func TestSameRecipeGivesSameImage(t *testing.T) {
	source := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(source, []byte("#!/bin/true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	recipe := image.Recipe{
		Name:        "example.com/script:v1",
		Files:       []image.File{{Source: source, Target: "/opt/script"}},
		Directories: []image.Directory{{Path: "/data", Owner: "65532", Mode: "0700"}},
		Links:       map[string]string{"/run.sh": "/opt/script"},
		Env:         map[string]string{"B": "2", "A": "1"},
	}
	a := buildIn(t, build.Cache{Dir: t.TempDir()}, recipe)
	b := buildIn(t, build.Cache{Dir: t.TempDir()}, recipe)
	if sum(t, a) != sum(t, b) {
		t.Error("the same recipe gave two images")
	}
	if filepath.Base(a) != filepath.Base(b) {
		t.Errorf("the same recipe gave two keys: %s, %s", a, b)
	}
	h := headers(t, a)
	if d := h["data"]; d == nil || d.Uid != 65532 || d.Gid != 65532 || d.Mode != 0o700 {
		t.Errorf("/data: %+v", d)
	}
	if l := h["run.sh"]; l == nil || l.Linkname != "/opt/script" {
		t.Errorf("/run.sh: %+v", l)
	}
}

func TestChangedFileGivesNewImage(t *testing.T) {
	source := filepath.Join(t.TempDir(), "data")
	cache := build.Cache{Dir: t.TempDir()}
	recipe := image.Recipe{Name: "example.com/data:v1", Files: []image.File{{Source: source, Target: "/data"}}}
	var paths []string
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, buildIn(t, cache, recipe))
	}
	if paths[0] == paths[1] {
		t.Error("another file gave the cached image")
	}
}

func TestRefusesDynamicProgramWithoutLibraries(t *testing.T) {
	recipe := image.Recipe{Name: "example.com/sh:v1", Files: []image.File{{Source: "/bin/sh", Target: "/sh"}}}
	_, err := image.Builder{Cache: build.Cache{Dir: t.TempDir()}}.Build(context.Background(), recipe)
	if err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("error %v does not say how to link", err)
	}
}

// programs are what to run in every built-in image, and what they say.
var programs = map[string][]struct{ run, says string }{
	"pause":            nil,
	"busybox":          {{"sh -c id", "uid=0(root)"}, {"wget --help", "Usage: wget"}, {"nslookup --help", "Usage: nslookup"}, {"httpd --help", "Usage: httpd"}, {"nc --help", "Usage: nc"}},
	"coredns":          {{"/coredns -version", "CoreDNS-1.15.0"}, {"/coredns -plugins", "kubernetes"}},
	"etcd-3.3":         {{"/usr/local/bin/etcd --version", "etcd Version: 3.3.25"}, {"/usr/local/bin/etcdctl --version", "3.3.25"}},
	"etcd-3.4":         {{"/usr/local/bin/etcd --version", "etcd Version: 3.4.23"}, {"/usr/local/bin/etcdctl version", "3.4.23"}},
	"etcd-3.5.21":      etcdPrograms("3.5.21"),
	"etcd-3.5":         etcdPrograms("3.5.35"),
	"etcd-3.6":         etcdPrograms("3.6.16"),
	"etcd-3.7":         etcdPrograms("3.7.3"),
	"memcached-1.6.18": {{"docker-entrypoint.sh memcached -V", "memcached 1.6.18"}, {"docker-entrypoint.sh -m 64 -V", "memcached 1.6.18"}},
	"memcached-1.6.38": {{"docker-entrypoint.sh memcached -V", "memcached 1.6.38"}, {"docker-entrypoint.sh -m 64 -V", "memcached 1.6.38"}},
}

func etcdPrograms(version string) []struct{ run, says string } {
	return []struct{ run, says string }{
		{"/usr/local/bin/etcd --version", "etcd Version: " + version},
		{"/usr/local/bin/etcdctl version", "etcdctl version: " + version},
		{"/usr/local/bin/etcdutl version", "etcdutl version: " + version},
	}
}

// TestBuiltinImagesRun builds every image and runs its programs as its user
// in its files alone.
func TestBuiltinImagesRun(t *testing.T) {
	if os.Getenv("LOCALKUBE_SLOW") == "" || os.Getuid() != 0 {
		t.Skip("set LOCALKUBE_SLOW=1, as root, to build all images and run what is in them")
	}
	cache, err := build.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	for _, recipe := range image.Builtin() {
		t.Run(recipe.Short, func(t *testing.T) {
			runs, known := programs[recipe.Short]
			if !known {
				t.Fatal("this test knows no program of it")
			}
			archive := buildIn(t, cache, recipe)
			root := unpack(t, archive)
			for _, p := range runs {
				out, err := inChroot(root, configOf(t, archive), p.run)
				if err != nil || !strings.Contains(out, p.says) {
					t.Errorf("%s: %v, said %q, which lacks %q", p.run, err, out, p.says)
				}
			}
		})
	}
}

func inChroot(root string, config v1.Config, command string) (string, error) {
	user := config.User
	if !strings.Contains(user, ":") {
		user += ":" + user
	}
	cmd := exec.Command("chroot", append([]string{"--userspec=" + user, root}, strings.Fields(command)...)...)
	cmd.Env = config.Env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func load(t *testing.T, name string) image.Recipe {
	t.Helper()
	r, err := image.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func buildIn(t *testing.T, cache build.Cache, r image.Recipe) string {
	t.Helper()
	path, err := image.Builder{Cache: cache}.Build(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, archive string) v1.Image {
	t.Helper()
	m, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		t.Fatal(err)
	}
	if len(m) != 1 {
		t.Fatalf("%d images in one archive", len(m))
	}
	img, err := tarball.Image(func() (io.ReadCloser, error) { return os.Open(archive) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func configOf(t *testing.T, archive string) v1.Config {
	t.Helper()
	c, err := open(t, archive).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return c.Config
}

func headers(t *testing.T, archive string) map[string]*tar.Header {
	t.Helper()
	r := mutate.Extract(open(t, archive))
	defer r.Close()
	in, found := tar.NewReader(r), map[string]*tar.Header{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = h
	}
}

func unpack(t *testing.T, archive string) string {
	t.Helper()
	root := t.TempDir()
	cmd := exec.Command("tar", "-xp", "--numeric-owner", "-C", root)
	r := mutate.Extract(open(t, archive))
	defer r.Close()
	cmd.Stdin = r
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	// t.TempDir is closed to other users.
	for dir := root; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func sum(t *testing.T, path string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}
