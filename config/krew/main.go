// Command krew builds the kubectl plugin for every platform, packs it, and writes the
// manifest with which krew, kubectl's plugin manager, installs it.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// plugin is its name, and krew wants the manifest's to be the same.
const plugin = "governor"

// platforms are those that the plugin is built for.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

type platform struct{ OS, Arch string }

// program is what the plugin's executable is called.
func (p platform) program() string {
	if p.OS == "windows" {
		return "kubectl-governor.exe"
	}
	return "kubectl-governor"
}

func (p platform) archive(version string) string {
	return fmt.Sprintf("kubectl-governor_%s_%s_%s.tar.gz", version, p.OS, p.Arch)
}

func main() {
	version := flag.String("version", "", "the release, such as v0.1.0")
	from := flag.String("from", "https://github.com/governor-dev/governor/releases/download", "where the archives of all releases will be")
	out := flag.String("out", "", "the directory for the archives and the manifest")
	flag.Parse()
	if err := run(context.Background(), *version, *from, *out); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version, from, out string) error {
	if !strings.HasPrefix(version, "v") || out == "" {
		return fmt.Errorf("-version %q, -out %q: a version as v0.1.0 and a directory are needed", version, out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // everyone may read it
		return err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return fmt.Errorf("run it in the root of the repository: %w", err)
	}
	sums := map[platform]string{}
	for _, p := range platforms {
		binary, err := build(ctx, p, version)
		if err != nil {
			return err
		}
		packed, err := pack(file{p.program(), 0o755, binary}, file{"LICENSE", 0o644, license})
		if err != nil {
			return err
		}
		sum := sha256.Sum256(packed)
		sums[p] = hex.EncodeToString(sum[:])
		if err := os.WriteFile(filepath.Join(out, p.archive(version)), packed, 0o644); err != nil { //nolint:gosec // everyone may read it
			return err
		}
	}
	manifest, err := describe(version, from, sums)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, plugin+".yaml"), manifest, 0o644) //nolint:gosec // everyone may read it
}

// build returns the plugin for the platform.
func build(ctx context.Context, p platform, version string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "kubectl-governor")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, p.program())
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", path, "./cmd/kubectl-governor") //nolint:gosec // of this repository
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch)
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s/%s: %w\n%s", p.OS, p.Arch, err, said)
	}
	return os.ReadFile(path) //nolint:gosec // it was just made
}

type file struct {
	name    string
	mode    int64
	content []byte
}

// pack makes the same archive of the same files on every day and machine.
func pack(files ...file) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, f := range files {
		if err := archive.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return packed.Bytes(), err
}

// describe is the manifest in krew's own terms.
func describe(version, from string, sums map[platform]string) ([]byte, error) {
	var all []any
	for _, p := range platforms {
		all = append(all, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": p.OS, "arch": p.Arch}},
			"uri":      from + "/" + version + "/" + p.archive(version),
			"sha256":   sums[p],
			"bin":      p.program(),
			"files":    []map[string]string{{"from": p.program(), "to": "."}, {"from": "LICENSE", "to": "."}},
		})
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]string{"name": plugin},
		"spec": map[string]any{
			"version":          version,
			"homepage":         "https://github.com/governor-dev/governor",
			"shortDescription": "See what Governor will do to stateful applications, and why it did",
			"description": "Shows the steps that the operator Governor will take, in their order and with their\n" +
				"reasons, before it takes them; what it did and why; how every application is, with its\n" +
				"members; and lets people approve, hold and take back.\n",
			"caveats":   "It works with clusters on which Governor runs: see kubectl governor status.\n",
			"platforms": all,
		},
	})
}
