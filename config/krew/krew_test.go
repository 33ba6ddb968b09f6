package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// manifest is what krew requires of a plugin (its docs/developer/plugin-manifest).
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
			Files  []struct {
				From string `json:"from"`
				To   string `json:"to"`
			} `json:"files"`
		} `json:"platforms"`
	} `json:"spec"`
}

// The manifest names every platform, each with its own archive.
func TestManifest(t *testing.T) {
	const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	sums := map[platform]string{}
	for _, p := range platforms {
		sums[p] = sum
	}
	raw, err := describe("v1.2.3", "https://example.com/releases", sums)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(raw, &m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "governor" || m.Spec.Version != "v1.2.3" {
		t.Errorf("%s", raw)
	}
	if n := len(m.Spec.ShortDescription); n == 0 || n > 80 || strings.ContainsAny(m.Spec.ShortDescription, "\r\n") {
		t.Errorf("krew shows 80 characters of one line in its list, these are %d", n)
	}
	if m.Spec.Description == "" || !strings.HasPrefix(m.Spec.Homepage, "https://") || len(m.Spec.Platforms) != len(platforms) {
		t.Errorf("%s", raw)
	}
	for i, os := range []string{"linux", "darwin", "windows"} {
		for j, arch := range []string{"amd64", "arm64"} {
			p := m.Spec.Platforms[2*i+j]
			uri := "https://example.com/releases/v1.2.3/kubectl-governor_v1.2.3_" + os + "_" + arch + ".tar.gz"
			if p.Selector.MatchLabels["os"] != os || p.Selector.MatchLabels["arch"] != arch || p.URI != uri || p.SHA256 != sum || p.Files[0].From != p.Bin {
				t.Errorf("%s/%s: %+v", os, arch, p)
			}
			for _, f := range p.Files { // only what is named here is installed, and krew wants the license to be
				if f.To != "." || f.From != p.Bin && f.From != "LICENSE" || len(p.Files) != 2 {
					t.Errorf("%s/%s installs %+v", os, arch, p.Files)
				}
			}
			if exe := regexp.MustCompile(`\.exe$`).MatchString(p.Bin); exe != (os == "windows") {
				t.Errorf("on %s it is called %s", os, p.Bin)
			}
		}
	}
}

// An archive depends on what is in it and on nothing else.
func TestArchivesAreTheSame(t *testing.T) {
	pair := []file{{"kubectl-governor", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("text")}}
	one, err := pack(pair...)
	if err != nil {
		t.Fatal(err)
	}
	other, err := pack(pair...)
	if err != nil || !bytes.Equal(one, other) {
		t.Errorf("they differ: %v", err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(unzipped)
	for _, want := range pair {
		header, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil || header.Name != want.name || header.Mode != want.mode || !bytes.Equal(content, want.content) {
			t.Errorf("%v %v: %s", err, header, content)
		}
	}
	if err := run(t.Context(), "1.2.3", "", t.TempDir()); err == nil {
		t.Error("krew wants versions as v1.2.3")
	}
}
