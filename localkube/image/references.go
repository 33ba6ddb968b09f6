package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// References reads an archive of images, as docker save or an OCI layout
// makes it, gzipped or not, and gives the full names of the images in it, as
// a node will know them. It is an error if the file is no such archive, is
// cut short, lacks a part that it lists, or names no image.
func References(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := readArchive(f)
	if err != nil {
		return nil, fmt.Errorf("%s is not an image archive (docker save, or a tar of an OCI layout): %w", path, err)
	}
	refs, err := a.references()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return refs, nil
}

// archive is what matters of an archive's files.
type archive struct {
	files    map[string]bool
	manifest []byte // manifest.json of docker save
	index    []byte // index.json of an OCI layout
}

const maxManifest = 4 << 20

func readArchive(r io.Reader) (archive, error) {
	a := archive{files: map[string]bool{}}
	in, err := gunzipped(r)
	if err != nil {
		return a, err
	}
	t := tar.NewReader(in)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return a, err
		}
		p := path.Clean(h.Name)
		a.files[p] = true
		switch p {
		case "manifest.json":
			a.manifest, err = io.ReadAll(io.LimitReader(t, maxManifest))
		case "index.json":
			a.index, err = io.ReadAll(io.LimitReader(t, maxManifest))
		}
		if err != nil {
			return a, err
		}
	}
}

func gunzipped(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	if magic, err := in.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return gzip.NewReader(in)
	}
	return in, nil
}

func (a archive) references() ([]string, error) {
	var names []string
	for _, read := range []func() ([]string, error){a.saved, a.indexed} {
		more, err := read()
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	if a.manifest == nil && a.index == nil {
		return nil, errors.New("not an image archive: it has neither a manifest.json (docker save) nor an index.json (OCI layout)")
	}
	if len(names) == 0 {
		return nil, errors.New("it names no image: save it by its name and tag, not by its ID")
	}
	for i, n := range names {
		full, err := fullName(n)
		if err != nil {
			return nil, err
		}
		names[i] = full
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// saved are the names in docker save's manifest.
func (a archive) saved() ([]string, error) {
	if a.manifest == nil {
		return nil, nil
	}
	var m tarball.Manifest
	if err := json.Unmarshal(a.manifest, &m); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	var names []string
	for _, image := range m {
		names = append(names, image.RepoTags...)
		for _, part := range append([]string{image.Config}, image.Layers...) {
			if !a.files[path.Clean(part)] {
				return nil, fmt.Errorf("manifest.json lists %s, which is missing: the archive is incomplete", part)
			}
		}
	}
	return names, nil
}

// indexed are the names in an OCI layout's index.
func (a archive) indexed() ([]string, error) {
	if a.index == nil {
		return nil, nil
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(a.index, &index); err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	var names []string
	for _, m := range index.Manifests {
		part := path.Join("blobs", m.Digest.Algorithm, m.Digest.Hex)
		if !a.files[part] {
			return nil, fmt.Errorf("index.json lists %s, which is missing: the archive is incomplete", part)
		}
		for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
			if n := m.Annotations[key]; n != "" {
				names = append(names, n)
				break
			}
		}
	}
	return names, nil
}

// fullName completes a name the way containerd does: busybox:1 is
// docker.io/library/busybox:1.
func fullName(n string) (string, error) {
	if !strings.ContainsAny(n, ":/@") {
		return "", fmt.Errorf("it names its image only %q: save it under a full name, such as example.com/%s:v1", n, n)
	}
	ref, err := name.ParseReference(n)
	if err != nil {
		return "", fmt.Errorf("it names an image %q: %w", n, err)
	}
	full := ref.Name()
	if rest, ok := strings.CutPrefix(full, name.DefaultRegistry+"/"); ok {
		full = "docker.io/" + rest
	}
	return full, nil
}
