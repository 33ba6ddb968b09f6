// Package image makes container images without Docker, from a recipe: of
// programs built from Go modules, of Debian packages, or of files that are
// there already. An image has one layer, on nothing; the same recipe and the
// same parts give the same digest.
package image

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/governor-dev/governor/localkube/build"
)

// Recipe says what an image is. It is a YAML file; a field that is not listed
// here is an error.
type Recipe struct {
	// Short is what a built-in recipe is called on the command line.
	Short string `json:"-"`
	// Name is the image's reference with its tag, as in
	// docker.io/library/memcached:1.6.18. In a recipe with go.family,
	// {version} stands for the family's version.
	Name string `json:"name"`
	// Aliases are further references of the same image.
	Aliases []string `json:"aliases,omitempty"`

	// The image's contents: at least one of these.
	Go     *Go     `json:"go,omitempty"`
	Debian *Debian `json:"debian,omitempty"`
	Files  []File  `json:"files,omitempty"`

	// Directories are made besides those that the contents need.
	Directories []Directory `json:"directories,omitempty"`
	// Links are symbolic links: where → what it points to.
	Links map[string]string `json:"links,omitempty"`

	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	// User is uid or uid:gid; 65532:65532 if empty, which is not root.
	User string `json:"user,omitempty"`
	// UserName is the user's name in /etc/passwd. If set, the image names its
	// user by it, as some public images do: Kubernetes then refuses
	// runAsNonRoot without runAsUser, because a name may stand for root.
	UserName string            `json:"userName,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	// Workdir is made if it is not there.
	Workdir string            `json:"workdir,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	// ExposedPorts are as in "11211/tcp"; without a protocol, tcp.
	ExposedPorts []string `json:"exposedPorts,omitempty"`
}

// Go takes programs from Go modules: of a family that localkube pins, or of
// any package at an exact version.
type Go struct {
	Family   string       `json:"family,omitempty"`
	Packages []build.Tool `json:"packages,omitempty"`
	// Directory is where the programs go; /usr/local/bin if empty.
	Directory string `json:"directory,omitempty"`
}

// Debian takes packages from Debian, without running their scripts: what
// those would set up (users, alternatives, certificates) is not there.
type Debian struct {
	// Release is as in "bookworm", which it is if empty.
	Release  string   `json:"release,omitempty"`
	Packages []string `json:"packages"`
	// Dependencies is "libraries" (the default: of what the packages depend
	// on, only libraries) or "all".
	Dependencies string `json:"dependencies,omitempty"`
	// VersionOf names the package whose upstream version the image's tag must
	// be, so that a tag never lies.
	VersionOf string `json:"versionOf,omitempty"`
}

// File is a file of this machine, or one whose content the recipe gives.
type File struct {
	// Source is its path. A relative one is relative to the recipe's file, or
	// to the working directory.
	Source  string `json:"source,omitempty"`
	Content string `json:"content,omitempty"`
	Target  string `json:"target"`
	// Mode is octal, as in "0755", which it is if empty.
	Mode string `json:"mode,omitempty"`
}

// Directory is an extra folder of the image.
type Directory struct {
	Path string `json:"path"`
	// Owner is uid or uid:gid; root if empty.
	Owner string `json:"owner,omitempty"`
	// Mode is octal, as in "1777"; "0755" if empty.
	Mode string `json:"mode,omitempty"`
}

const defaultUser = "65532:65532"

// Releases are the releases of Debian that a recipe can name.
var Releases = []string{"bullseye", "bookworm", "trixie", "forky", "sid"}

var (
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	userName    = regexp.MustCompile(`^[a-z_][a-z0-9_-]*$`)
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	port        = regexp.MustCompile(`^([1-9][0-9]{0,4})(/(tcp|udp|sctp))?$`)
)

// Validate says everything that is wrong with a recipe, each with the field,
// its value and what is allowed.
func (r Recipe) Validate() error {
	var errs []error
	bad := func(field string, value any, allowed string) {
		errs = append(errs, fmt.Errorf("%s: %q is not %s", field, fmt.Sprint(value), allowed))
	}
	for i, ref := range append([]string{r.Name}, r.Aliases...) {
		if _, err := name.NewTag(ref, name.StrictValidation); err != nil {
			bad(field("name", "aliases", i), ref, "an image reference with registry path and tag, such as docker.io/library/memcached:1.6.18")
		}
	}
	if r.Go == nil && r.Debian == nil && len(r.Files) == 0 {
		errs = append(errs, errors.New("the image would be empty: give go, debian or files"))
	}
	r.validateParts(bad)
	r.validateTree(bad)
	r.validateRun(bad)
	return errors.Join(errs...)
}

func field(first, others string, i int) string {
	if i == 0 {
		return first
	}
	return fmt.Sprintf("%s[%d]", others, i-1)
}

type complain func(field string, value any, allowed string)

func (r Recipe) validateParts(bad complain) {
	if g := r.Go; g != nil {
		g.validate(bad)
	}
	if d := r.Debian; d != nil {
		d.validate(bad)
	}
	for i, f := range r.Files {
		if (f.Source == "") == (f.Content == "") {
			bad(fmt.Sprintf("files[%d].source", i), f.Source, "complete: give either source, a file's path, or content")
		}
		absolute(bad, fmt.Sprintf("files[%d].target", i), f.Target)
		octal(bad, fmt.Sprintf("files[%d].mode", i), f.Mode)
	}
}

func (g Go) validate(bad complain) {
	families := build.FamilyNames()
	if g.Family != "" && !slices.Contains(families, g.Family) {
		bad("go.family", g.Family, "one of "+strings.Join(families, ", "))
	}
	if (g.Family == "") == (len(g.Packages) == 0) {
		bad("go", g.Family, "complete: give either family or packages")
	}
	for i, t := range g.Packages {
		if err := t.Validate(); err != nil {
			bad(fmt.Sprintf("go.packages[%d]", i), t.Package, "a program to build: "+err.Error())
		}
	}
	if g.Directory != "" {
		absolute(bad, "go.directory", g.Directory)
	}
}

func (d Debian) validate(bad complain) {
	if d.Release != "" && !slices.Contains(Releases, d.Release) {
		bad("debian.release", d.Release, "one of "+strings.Join(Releases, ", "))
	}
	if len(d.Packages) == 0 {
		bad("debian.packages", "", "a list of package names with at least one")
	}
	for i, p := range d.Packages {
		if !packageName.MatchString(p) {
			bad(fmt.Sprintf("debian.packages[%d]", i), p, "a package's name")
		}
	}
	if !slices.Contains([]string{"", libraries, everything}, d.Dependencies) {
		bad("debian.dependencies", d.Dependencies, libraries+" or "+everything)
	}
	if d.VersionOf != "" && !slices.Contains(d.Packages, d.VersionOf) {
		bad("debian.versionOf", d.VersionOf, "one of debian.packages")
	}
}

func (r Recipe) validateTree(bad complain) {
	for i, d := range r.Directories {
		at := fmt.Sprintf("directories[%d].", i)
		absolute(bad, at+"path", d.Path)
		octal(bad, at+"mode", d.Mode)
		if _, _, ok := owner(d.Owner); !ok {
			bad(at+"owner", d.Owner, "uid or uid:gid in numbers")
		}
	}
	for _, at := range sortedKeys(r.Links) {
		absolute(bad, "links", at)
		if r.Links[at] == "" {
			bad("links."+at, "", "what the link points to")
		}
	}
}

func (r Recipe) validateRun(bad complain) {
	if _, _, ok := owner(r.User); !ok {
		bad("user", r.User, "uid or uid:gid in numbers; a name can be given in userName")
	}
	if r.UserName != "" && !userName.MatchString(r.UserName) {
		bad("userName", r.UserName, "a user's name in lower case")
	}
	for _, k := range sortedKeys(r.Env) {
		if !envName.MatchString(k) {
			bad("env", k, "a variable's name")
		}
	}
	if r.Workdir != "" {
		absolute(bad, "workdir", r.Workdir)
	}
	for i, p := range r.ExposedPorts {
		m := port.FindStringSubmatch(p)
		if m == nil || atoi(m[1]) > 65535 {
			bad(fmt.Sprintf("exposedPorts[%d]", i), p, "a port from 1 to 65535 with /tcp, /udp, /sctp or nothing after it")
		}
	}
}

func absolute(bad complain, field, p string) {
	if !path.IsAbs(p) || path.Clean(p) != p || p == "/" && field != "workdir" && field != "go.directory" {
		bad(field, p, "an absolute path without . and .. and doubled or closing slashes")
	}
}

func octal(bad complain, field, mode string) {
	if _, err := parseMode(mode, 0); err != nil {
		bad(field, mode, "an octal mode such as 0755, in quotes")
	}
}

func parseMode(mode string, otherwise int64) (int64, error) {
	if mode == "" {
		return otherwise, nil
	}
	m, err := strconv.ParseUint(mode, 8, 12)
	return int64(m), err
}

// owner reads uid or uid:gid; the gid is the uid where it is not given.
func owner(s string) (uid, gid int, ok bool) {
	if s == "" {
		return 0, 0, true
	}
	u, g, both := strings.Cut(s, ":")
	if !both {
		g = u
	}
	id, err := strconv.ParseUint(u, 10, 31)
	group, errGroup := strconv.ParseUint(g, 10, 31)
	return int(id), int(group), err == nil && errGroup == nil
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}
