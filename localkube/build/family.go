package build

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

//go:generate go run ./pin

// Go does not embed a folder that holds a go.mod, hence the files' names.
//
//go:embed families/*/*
var families embed.FS

// family says how to build a wrapper module; its pins are in families/NAME.
type family struct {
	name   string
	module string            // whose version is the family's
	fixed  string            // the version of a family that has no such module
	tags   string            // build tags
	stamps []string          // variables set by the linker; {version}, {major}, {minor}
	rename map[string]string // program's name as built → as installed
}

var etcdPrograms = map[string]string{"server": "etcd"}

var all = []family{
	{
		name:   "kubernetes",
		module: "k8s.io/kubernetes",
		stamps: []string{
			"k8s.io/component-base/version.gitVersion={version}",
			"k8s.io/component-base/version.gitMajor={major}",
			"k8s.io/component-base/version.gitMinor={minor}",
		},
	},
	{
		name:   "containerd",
		module: "github.com/containerd/containerd/v2",
		tags:   "no_btrfs,no_devmapper,no_zfs",
		stamps: []string{"github.com/containerd/containerd/v2/version.Version={version}"},
	},
	{name: "etcd", module: "go.etcd.io/etcd/server/v3", rename: etcdPrograms},
	{name: "etcd-3.5.21", module: "go.etcd.io/etcd/server/v3", rename: etcdPrograms},
	{name: "etcd-3.5", module: "go.etcd.io/etcd/server/v3", rename: etcdPrograms},
	{name: "etcd-3.7", module: "go.etcd.io/etcd/server/v3", rename: etcdPrograms},
	{name: "coredns", module: "github.com/coredns/coredns"},
	{name: "pause", fixed: "v3.10"},
}

func familyNamed(name string) (family, error) {
	for _, f := range all {
		if f.name == name {
			return f, nil
		}
	}
	return family{}, fmt.Errorf("no family of programs is called %q; there are %s", name, strings.Join(FamilyNames(), ", "))
}

// FamilyNames are the names that Family knows.
func FamilyNames() []string {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.name
	}
	return names
}

// FamilyVersion is the version that a family is pinned to, as in "v3.6.16".
func FamilyVersion(name string) (string, error) {
	_, version, err := FamilyModule(name)
	return version, err
}

// FamilyModule is the module whose version is the family's, and that version;
// "" where the family has no such module.
func FamilyModule(name string) (module, version string, err error) {
	f, err := familyNamed(name)
	if err != nil {
		return "", "", err
	}
	return f.module, f.version(), nil
}

// KubernetesVersion is the version of the cluster, as in "v1.37.1".
func KubernetesVersion() string {
	version, err := FamilyVersion("kubernetes")
	if err != nil {
		panic(err)
	}
	return version
}

// file reads one of the family's embedded files; "" if it has no such file.
func (f family) file(name string) string {
	b, err := families.ReadFile("families/" + f.name + "/" + name)
	if err != nil {
		return ""
	}
	return string(b)
}

func (f family) version() string {
	if f.module == "" {
		return f.fixed
	}
	mod, err := modfile.Parse(f.name, []byte(f.file("mod")), nil)
	if err != nil {
		panic(err) // embedded and tested
	}
	for _, r := range mod.Require {
		if r.Mod.Path == f.module {
			return r.Mod.Version
		}
	}
	panic(f.name + " does not require " + f.module)
}

// target is the family as something to build.
func (f family) target() target {
	t := target{
		name:    f.name,
		version: f.version(),
		files:   map[string]string{"go.mod": f.file("mod"), "go.sum": f.file("sum")},
		pattern: "tool",
		flags:   f.flags(),
		rename:  f.rename,
	}
	if main := f.file("main.go.txt"); main != "" {
		t.files["main.go"] = main
		t.pattern = "."
	}
	return t
}

// withoutDWARF leaves out of every package the debugging information that the linker would throw away: a first build is
// a tenth faster.
const withoutDWARF = "-gcflags=all=-dwarf=false"

// flags of go build. Without -trimpath the standard library is compiled once
// for all families, and for whatever else is built on this machine.
func (f family) flags() []string {
	version := f.version()
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	values := strings.NewReplacer("{version}", version, "{major}", major, "{minor}", minor)
	linker := "-s -w"
	for _, stamp := range f.stamps {
		linker += " -X " + values.Replace(stamp)
	}
	flags := []string{"-buildvcs=false", withoutDWARF, "-ldflags=" + linker}
	if f.tags != "" {
		flags = append(flags, "-tags="+f.tags)
	}
	return flags
}

// sortedKeys are a map's keys in order.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
