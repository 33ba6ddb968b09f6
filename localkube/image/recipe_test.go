package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/governor-dev/governor/localkube/build"
)

func TestValidate(t *testing.T) {
	file := []File{{Source: "/bin/true", Target: "/true"}}
	for name, c := range map[string]struct {
		recipe Recipe
		want   []string // in the error; none: valid
	}{
		"good":            {Recipe{Name: "example.com/a:v1", Files: file}, nil},
		"all of it":       {full(), nil},
		"no tag":          {Recipe{Name: "example.com/a", Files: file}, []string{"name:", "example.com/a", "tag"}},
		"short name":      {Recipe{Name: "busybox:1", Files: file}, []string{"name:", "docker.io/library"}},
		"bad alias":       {Recipe{Name: "example.com/a:v1", Aliases: []string{"A"}, Files: file}, []string{"aliases[0]", `"A"`}},
		"empty":           {Recipe{Name: "example.com/a:v1"}, []string{"empty"}},
		"unknown family":  {goRecipe(Go{Family: "docker"}), []string{"go.family", "docker", "containerd"}},
		"family and more": {goRecipe(Go{Family: "pause", Packages: []build.Tool{{Package: "a.b/c", Version: "v1.0.0"}}}), []string{"either family or packages"}},
		"neither":         {goRecipe(Go{}), []string{"either family or packages"}},
		"loose version":   {goRecipe(Go{Packages: []build.Tool{{Package: "a.b/c", Version: "latest"}}}), []string{"go.packages[0]", "exact version"}},
		"unknown release": {debRecipe(Debian{Release: "woody", Packages: []string{"dash"}}), []string{"debian.release", "woody", "bookworm"}},
		"no package":      {debRecipe(Debian{}), []string{"debian.packages"}},
		"option":          {debRecipe(Debian{Packages: []string{"-y"}}), []string{"debian.packages[0]", `"-y"`}},
		"dependencies":    {debRecipe(Debian{Packages: []string{"dash"}, Dependencies: "some"}), []string{"debian.dependencies", "libraries or all"}},
		"versionOf":       {debRecipe(Debian{Packages: []string{"dash"}, VersionOf: "bash"}), []string{"debian.versionOf", "bash"}},
		"named user":      {Recipe{Name: "example.com/a:v1", Files: file, User: "root"}, []string{"user:", "root", "userName"}},
		"relative target": {Recipe{Name: "example.com/a:v1", Files: []File{{Source: "a", Target: "b"}}}, []string{"files[0].target", "absolute"}},
		"climbing target": {Recipe{Name: "example.com/a:v1", Files: []File{{Source: "a", Target: "/../b"}}}, []string{"files[0].target"}},
		"no source":       {Recipe{Name: "example.com/a:v1", Files: []File{{Target: "/b"}}}, []string{"files[0].source", "content"}},
		"decimal mode":    {Recipe{Name: "example.com/a:v1", Files: []File{{Source: "a", Target: "/b", Mode: "0689"}}}, []string{"files[0].mode", "octal"}},
		"port":            {Recipe{Name: "example.com/a:v1", Files: file, ExposedPorts: []string{"70000"}}, []string{"exposedPorts[0]", "70000", "65535"}},
		"env":             {Recipe{Name: "example.com/a:v1", Files: file, Env: map[string]string{"A=B": ""}}, []string{"env", "A=B"}},
		"owner":           {Recipe{Name: "example.com/a:v1", Files: file, Directories: []Directory{{Path: "/d", Owner: "me"}}}, []string{"directories[0].owner", "me"}},
		"two mistakes":    {Recipe{Name: "a", Files: file, Workdir: "w"}, []string{"name:", "workdir:"}},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, c.recipe.Validate(), c.want) })
	}
}

func wantError(t *testing.T, err error, want []string) {
	t.Helper()
	if (err == nil) != (len(want) == 0) {
		t.Fatalf("error %v, want one with %q", err, want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q lacks %q", err, w)
		}
	}
}

func full() Recipe {
	return Recipe{
		Name: "example.com/a:v1", Aliases: []string{"docker.io/library/a:1"},
		Go:     &Go{Packages: []build.Tool{{Package: "a.b/c", Version: "v1.0.0", Output: "d"}}, Directory: "/"},
		Debian: &Debian{Release: "trixie", Packages: []string{"libstdc++6"}, Dependencies: "all", VersionOf: "libstdc++6"},
		Files:  []File{{Content: "x", Target: "/etc/x", Mode: "0644"}},
		User:   "10:20", UserName: "_apt", Env: map[string]string{"A": "b"}, Workdir: "/", ExposedPorts: []string{"53", "53/udp"},
		Directories: []Directory{{Path: "/tmp", Mode: "1777", Owner: "0:0"}}, Links: map[string]string{"/bin/sh": "dash"},
	}
}

func goRecipe(g Go) Recipe      { return Recipe{Name: "example.com/a:v1", Go: &g} }
func debRecipe(d Debian) Recipe { return Recipe{Name: "example.com/a:v1", Debian: &d} }

func TestBuiltinRecipes(t *testing.T) {
	seen := map[string]string{}
	for _, r := range Builtin() {
		for _, ref := range r.references() {
			if other, twice := seen[ref]; twice {
				t.Errorf("%s and %s are both %s", other, r.Short, ref)
			}
			seen[ref] = r.Short
			if strings.Contains(ref, "{") {
				t.Errorf("%s: no version in %s", r.Short, ref)
			}
			if found, err := Load(ref); err != nil || found.Short != r.Short {
				t.Errorf("Load(%s): %s, %v", ref, found.Short, err)
			}
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.yaml")
	for text, want := range map[string][]string{
		"name: example.com/a:v1\nfiles: [{source: x, target: /x}]\n": nil,
		"name: example.com/a:v1\nfile: []\n":                         {file, `"file"`},
		"name: [":                                                    {file},
		"go: {family: nope}\nname: a\n":                              {"go.family", "nope"},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Load(file)
		wantError(t, err, want)
		if err == nil && r.Files[0].Source != filepath.Join(dir, "x") {
			t.Errorf("source %s is not beside the recipe", r.Files[0].Source)
		}
	}
	_, err := Load("memcache")
	wantError(t, err, []string{`"memcache"`, "memcached-1.6.18", "pause"})
}

func TestUpstreamVersion(t *testing.T) {
	for debian, want := range map[string]string{
		"1.6.18-1+deb12u1":        "1.6.18",
		"3.3.25+dfsg-6+b6":        "3.3.25",
		"1:1.35.0-4+deb12u1+b1":   "1.35.0",
		"3.4.23-4+b4":             "3.4.23",
		"20230311":                "20230311",
		"2:8.5.6+dfsg1-1~deb12u1": "8.5.6",
	} {
		if got := upstream(debian); got != want {
			t.Errorf("%s is upstream's %s, want %s", debian, got, want)
		}
	}
}

func TestTagMustBeTheVersion(t *testing.T) {
	packages := []debPackage{{name: "memcached", version: "1.6.18-1"}}
	if err := checkVersion("docker.io/library/memcached:1.6.18", "memcached", packages); err != nil {
		t.Error(err)
	}
	wantError(t, checkVersion("docker.io/library/memcached:1.6.22", "memcached", packages), []string{"1.6.22", "1.6.18"})
}

const stanzas = `Package: server
Version: 1:2.0-1
Architecture: amd64
Pre-Depends: init (>= 1)
Depends: libc6 (>= 2.34), libssl-abi, perl:any | awk
Section: web
Description: a server
 that serves
 .
 more

Package: libc6
Version: 2.36-9
Architecture: amd64
Section: libs

Package: libssl3
Version: 3.0
Architecture: amd64
Provides: libssl-abi (= 3)
Depends: libz
Section: libs

Package: libz
Version: 1
Architecture: amd64
Section: oldlibs

Package: libunused
Version: 1
Architecture: amd64
Section: libs

Package: perl
Version: 5
Architecture: amd64
Depends: libunused
Section: perl
`

func TestLibrariesOnly(t *testing.T) {
	all, err := parsePackages(stanzas)
	if err != nil || len(all) != 6 {
		t.Fatalf("%d packages, %v", len(all), err)
	}
	if f := all[0].fileName(); f != "server_1%3a2.0-1_amd64.deb" {
		t.Errorf("file name %s", f)
	}
	var names []string
	for _, p := range librariesOf([]string{"server"}, all) {
		names = append(names, p.name)
	}
	if want := []string{"server", "libc6", "libssl3", "libz"}; !slices.Equal(names, want) {
		t.Errorf("kept %v, want %v", names, want)
	}
}

func TestMirrors(t *testing.T) {
	main, security := mirrors(`'http://m/debian/dists/bookworm/InRelease' m_debian 0
'http://m/debian/dists/bookworm-updates/InRelease' m_updates 0
'http://m/sec/dists/bookworm-security/InRelease' m_security 0
'http://m/debian/dists/bookworm/main/binary-amd64/Packages.xz' m_packages 0
'http://x/node/dists/nodistro/InRelease' x_node 0`)
	if main != "http://m/debian" || security != "http://m/sec" {
		t.Errorf("mirrors %s, %s", main, security)
	}
	if main, _ := mirrors("'http://archive.example/ubuntu/dists/noble/InRelease' x 0"); main != "" {
		t.Errorf("mirror %s on a machine without Debian's", main)
	}
}

// A package may hold paths as they are with or without a merged /usr.
func TestMergedUsr(t *testing.T) {
	tr, err := newTree(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	link := func(name, to string, kind byte) tar.Header {
		return tar.Header{Name: name, Linkname: to, Typeflag: kind}
	}
	for _, err := range []error{
		tr.folder("./lib", 0o755, 0, 0),
		tr.file("./lib/x/libc.so", 0o755, strings.NewReader("old")),
		tr.file("./usr/lib/x/libc.so", 0o755, strings.NewReader("new!")),
		tr.add(link("./lib/x/up.so", "../../usr/share/f", tar.TypeSymlink), nil),
		tr.add(link("./lib/x/same.so", "libc.so", tar.TypeSymlink), nil),
		tr.add(link("./bin/hard", "./lib/x/libc.so", tar.TypeLink), nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := written(t, tr)
	for name, want := range map[string]string{
		"lib":               "→usr/lib",
		"usr/lib/x/libc.so": "new!",
		"usr/lib/x/up.so":   "→/usr/share/f",
		"usr/lib/x/same.so": "→libc.so",
		"usr/bin/hard":      "→usr/lib/x/libc.so",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if err := tr.add(tar.Header{Name: "dev/null", Typeflag: tar.TypeChar}, nil); err == nil {
		t.Error("a device was taken")
	}
}

func written(t *testing.T, tr *tree) map[string]string {
	t.Helper()
	var b bytes.Buffer
	if err := tr.write(&b); err != nil {
		t.Fatal(err)
	}
	in, found := tar.NewReader(&b), map[string]string{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if h.Linkname != "" {
			content = []byte("→" + h.Linkname)
		}
		found[h.Name] = string(content)
	}
}

func TestReferences(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	blob := "blobs/sha256/" + strings.TrimPrefix(digest, "sha256:")
	index := func(annotations string) string {
		return `{"schemaVersion":2,"manifests":[{"digest":"` + digest + `","size":1,"annotations":{` + annotations + `}}]}`
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
		err   []string
	}{
		"docker save": {files: map[string]string{
			"manifest.json": `[{"Config":"c","RepoTags":["busybox:1","example.com/a:v1"],"Layers":["l/layer.tar"]}]`, "c": "", "l/layer.tar": ""},
			want: []string{"docker.io/library/busybox:1", "example.com/a:v1"}},
		"oci": {files: map[string]string{"index.json": index(`"org.opencontainers.image.ref.name":"example.com/a:v1"`), blob: "x"},
			want: []string{"example.com/a:v1"}},
		"both": {files: map[string]string{
			"index.json":    index(`"io.containerd.image.name":"docker.io/library/a:1","org.opencontainers.image.ref.name":"1"`),
			"manifest.json": `[{"Config":"c","RepoTags":["a:1"]}]`, "c": "", blob: "x"},
			want: []string{"docker.io/library/a:1"}},
		"tag only":      {files: map[string]string{"index.json": index(`"org.opencontainers.image.ref.name":"latest"`), blob: "x"}, err: []string{`"latest"`, "full name"}},
		"by id":         {files: map[string]string{"manifest.json": `[{"Config":"c"}]`, "c": ""}, err: []string{"names no image"}},
		"missing layer": {files: map[string]string{"manifest.json": `[{"Config":"c","RepoTags":["a:1"],"Layers":["l"]}]`, "c": ""}, err: []string{" l,", "incomplete"}},
		"missing blob":  {files: map[string]string{"index.json": index("")}, err: []string{blob, "incomplete"}},
		"other tar":     {files: map[string]string{"x": ""}, err: []string{"not an image archive"}},
		"bad json":      {files: map[string]string{"manifest.json": "{"}, err: []string{"manifest.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := References(fixture(t, c.files))
			wantError(t, err, c.err)
			if !slices.Equal(got, c.want) {
				t.Errorf("names %v, want %v", got, c.want)
			}
		})
	}
}

func TestReferencesOfOtherFiles(t *testing.T) {
	whole, err := os.ReadFile(fixture(t, map[string]string{"manifest.json": `[{"Config":"c","RepoTags":["a:1"]}]`, "c": strings.Repeat("x", 5000)}))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"text":  []byte(strings.Repeat("hello, I am no archive\n", 100)),
		"empty": nil,
		"cut":   whole[:3000],
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := References(file)
		wantError(t, err, []string{file, "not an image archive"})
	}
}

func fixture(t *testing.T, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for _, name := range sortedKeys(files) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}
