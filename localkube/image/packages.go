package image

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

const (
	libraries  = "libraries"
	everything = "all"
)

// debPackage is one version of a Debian package.
type debPackage struct {
	name, version, arch string
	section             string
	depends             []string // names, alternatives among them
	provides            []string
}

// fileName is what apt-get download calls it.
func (p debPackage) fileName() string {
	return fmt.Sprintf("%s_%s_%s.deb", p.name, strings.ReplaceAll(p.version, ":", "%3a"), p.arch)
}

// resolve lets apt choose versions of the packages and of all that they
// depend on, and keeps of those what the recipe wants.
func (r *aptRoot) resolve(ctx context.Context, d Debian) ([]debPackage, error) {
	out, err := r.run(ctx, append([]string{"apt-get", "install", "--simulate", "--yes"}, d.Packages...)...)
	if err != nil {
		return nil, err
	}
	var wanted []string
	for _, line := range strings.Split(string(out), "\n") {
		// Inst memcached (1.6.18-1 Debian:12.0/stable [amd64])
		if f := strings.Fields(line); len(f) >= 3 && f[0] == "Inst" {
			wanted = append(wanted, f[1]+"="+strings.TrimPrefix(f[2], "("))
		}
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("apt would install nothing for %s", strings.Join(d.Packages, ", "))
	}
	out, err = r.run(ctx, append([]string{"apt-cache", "show"}, wanted...)...)
	if err != nil {
		return nil, err
	}
	packages, err := parsePackages(string(out))
	if err != nil {
		return nil, err
	}
	if d.Dependencies != everything {
		packages = librariesOf(d.Packages, packages)
	}
	slices.SortFunc(packages, func(a, b debPackage) int { return strings.Compare(a.name, b.name) })
	return packages, nil
}

// parsePackages reads the stanzas that apt-cache show prints.
func parsePackages(text string) ([]debPackage, error) {
	in := textproto.NewReader(bufio.NewReader(strings.NewReader(text)))
	var all []debPackage
	for {
		h, err := in.ReadMIMEHeader()
		if name := h.Get("Package"); name != "" {
			all = append(all, debPackage{
				name:     name,
				version:  h.Get("Version"),
				arch:     h.Get("Architecture"),
				section:  h.Get("Section"),
				depends:  append(relations(h.Get("Pre-Depends")), relations(h.Get("Depends"))...),
				provides: relations(h.Get("Provides")),
			})
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("apt-cache show: %w", err)
		}
	}
}

// relations are the names in a field such as "libc6 (>= 2.34), perl:any | awk".
func relations(field string) []string {
	var names []string
	for _, r := range strings.FieldsFunc(field, func(c rune) bool { return c == ',' || c == '|' }) {
		name, _, _ := strings.Cut(strings.TrimSpace(r), " ")
		name, _, _ = strings.Cut(name, ":")
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// librariesOf keeps the wanted packages and the libraries that they need.
// What else packages depend on is for the scripts of an installation.
func librariesOf(wanted []string, all []debPackage) []debPackage {
	kept := map[string]bool{}
	var keep func(p debPackage)
	keep = func(p debPackage) {
		if kept[p.name] {
			return
		}
		kept[p.name] = true
		for _, d := range all {
			if strings.HasSuffix(d.section, "libs") && d.satisfies(p.depends) {
				keep(d)
			}
		}
	}
	for _, p := range all {
		if p.satisfies(wanted) {
			keep(p)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(p debPackage) bool { return !kept[p.name] })
}

func (p debPackage) satisfies(names []string) bool {
	return slices.Contains(names, p.name) ||
		slices.ContainsFunc(p.provides, func(v string) bool { return slices.Contains(names, v) })
}

// upstream is the version without what Debian adds to it: 1:1.6.18+dfsg-2 is
// Debian's name for 1.6.18.
func upstream(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		version = rest
	}
	if i := strings.LastIndex(version, "-"); i >= 0 {
		version = version[:i]
	}
	version, _, _ = strings.Cut(version, "+")
	return version
}

// checkVersion refuses a tag that is not the version of what is in the image.
func checkVersion(reference, versionOf string, packages []debPackage) error {
	if versionOf == "" {
		return nil
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	for _, p := range packages {
		if p.name != versionOf {
			continue
		}
		if is := upstream(p.version); is != strings.TrimPrefix(tag.TagStr(), "v") {
			return fmt.Errorf("name: the tag is %s, but Debian's %s is %s (%s): change the tag", tag.TagStr(), versionOf, is, p.version)
		}
		return nil
	}
	return fmt.Errorf("debian.versionOf: %s is not among the packages", versionOf)
}
