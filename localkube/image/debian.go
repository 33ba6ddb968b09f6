package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// aptRoot is a private set of apt's folders for one release of Debian: apt
// resolves, downloads and verifies there, and the machine's own apt is only
// asked where its mirror is.
type aptRoot struct {
	dir     string
	release string
}

// indexAge is how long package lists are good enough.
const indexAge = 24 * time.Hour

// unpack puts the packages of a recipe and their dependencies into a tree.
func (w *work) unpack(ctx context.Context, d Debian, t *tree) error {
	if d.Release == "" {
		d.Release = "bookworm"
	}
	root, err := openAptRoot(ctx, filepath.Join(w.Cache.Dir, "apt", d.Release), d.Release)
	if err != nil {
		return err
	}
	packages, err := root.resolve(ctx, d)
	if err != nil {
		return err
	}
	if err := checkVersion(w.recipe.Name, d.VersionOf, packages); err != nil {
		return err
	}
	if err := root.download(ctx, packages); err != nil {
		return err
	}
	for _, p := range packages {
		if err := mergeDeb(ctx, root.archive(p), t); err != nil {
			return fmt.Errorf("unpacking %s: %w", p.name, err)
		}
	}
	return nil
}

// openAptRoot prepares the folders and brings the package lists up to date.
func openAptRoot(ctx context.Context, dir, release string) (*aptRoot, error) {
	for _, tool := range []string{"apt-get", "apt-cache", "apt-config", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("images of Debian packages need Debian's %s, which is not in PATH", tool)
		}
	}
	r := &aptRoot{dir: dir, release: release}
	stamp := filepath.Join(dir, "updated")
	if info, err := os.Stat(stamp); err == nil && time.Since(info.ModTime()) < indexAge {
		return r, nil
	}
	for _, sub := range []string{"etc/apt/apt.conf.d", "etc/apt/preferences.d", "lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	if err := r.configure(ctx); err != nil {
		return nil, err
	}
	if err := r.update(ctx); err != nil {
		return nil, err
	}
	return r, os.WriteFile(stamp, nil, 0o644)
}

// inherited are the machine's settings that say how to reach a mirror.
var inherited = regexp.MustCompile(`(?m)^Acquire::(http|https|Check-|Retries|Force).*$`)

func (r *aptRoot) configure(ctx context.Context) error {
	machine, err := run(ctx, nil, "apt-config", "dump")
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`Dir %q;
Dir::State %q;
Dir::State::status %q;
Dir::Cache %q;
Dir::Cache::srcpkgcache "";
Dir::Etc::netrc "/etc/apt/auth.conf";
Dir::Etc::netrcparts "/etc/apt/auth.conf.d";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Languages "none";
%s
`, r.dir, r.dir, filepath.Join(r.dir, "status"), r.dir, strings.Join(inherited.FindAllString(string(machine), -1), "\n"))
	return errors.Join(
		os.WriteFile(filepath.Join(r.dir, "apt.conf"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(r.dir, "status"), nil, 0o644)) // nothing is installed
}

// update tries where a release may be: a release that is no longer supported
// loses its security updates.
func (r *aptRoot) update(ctx context.Context) error {
	places, err := r.places(ctx)
	if err != nil {
		return err
	}
	var tried []error
	for _, sources := range places {
		if err := os.WriteFile(filepath.Join(r.dir, "etc/apt/sources.list"), []byte(sources), 0o644); err != nil {
			return err
		}
		_, err := r.run(ctx, "apt-get", "update", "--error-on=any")
		if err == nil {
			return nil
		}
		tried = append(tried, err)
	}
	return fmt.Errorf("no package lists of Debian %s: %w", r.release, errors.Join(tried...))
}

// keyring holds the keys of all releases; Debian's debian-archive-keyring.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

func (r *aptRoot) places(ctx context.Context) ([]string, error) {
	if _, err := os.Stat(keyring); err != nil {
		return nil, fmt.Errorf("the signing keys of Debian are needed to check its packages: %w; install debian-archive-keyring", err)
	}
	// What apt would fetch is known also on a machine that has fetched nothing yet.
	out, err := run(ctx, nil, "apt-get", "update", "--print-uris")
	if err != nil {
		return nil, err
	}
	main, security := mirrors(string(out))
	if main == "" {
		return nil, errors.New("apt knows no source of Debian on this machine: images are made of its packages; add one to /etc/apt/sources.list.d")
	}
	line := func(uri, suite string) string {
		return fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, uri, suite)
	}
	plain := line(main, r.release)
	if r.release == "sid" || security == "" {
		return []string{plain}, nil
	}
	return []string{plain + line(security, r.release+"-security"), plain}, nil
}

// inRelease is a line of what apt would fetch: the index of one suite at one mirror.
var inRelease = regexp.MustCompile(`(?m)^'(\S+)/dists/(\S+)/InRelease'`)

// mirrors finds where this machine gets Debian from, among all that its apt would fetch: of the sources of Debian's own
// releases the main one and that of security updates, empty if there is none.
func mirrors(uris string) (main, security string) {
	for _, found := range inRelease.FindAllStringSubmatch(uris, -1) {
		release, part, _ := strings.Cut(found[2], "-")
		if !slices.Contains(Releases, release) && !slices.Contains([]string{"stable", "oldstable", "testing"}, release) {
			continue
		}
		switch part {
		case "":
			main = found[1]
		case "security":
			security = found[1]
		}
	}
	return main, security
}

// run runs one of apt's programs on the private folders.
func (r *aptRoot) run(ctx context.Context, args ...string) ([]byte, error) {
	env := append(os.Environ(), "APT_CONFIG="+filepath.Join(r.dir, "apt.conf"), "LC_ALL=C")
	return run(ctx, func(cmd *exec.Cmd) { cmd.Env, cmd.Dir = env, filepath.Join(r.dir, "archives") }, args...)
}

func run(ctx context.Context, adjust func(*exec.Cmd), args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if adjust != nil {
		adjust(cmd)
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return out, nil
}

// download fetches the packages that are not there yet, and apt checks them.
func (r *aptRoot) download(ctx context.Context, packages []debPackage) error {
	args := []string{"apt-get", "download"}
	for _, p := range packages {
		if _, err := os.Stat(r.archive(p)); err != nil {
			args = append(args, p.name+"="+p.version)
		}
	}
	if len(args) == 2 {
		return nil
	}
	_, err := r.run(ctx, args...)
	return err
}

// archive is where a downloaded package is.
func (r *aptRoot) archive(p debPackage) string {
	return filepath.Join(r.dir, "archives", p.fileName())
}

// mergeDeb unpacks a package without running its scripts.
func mergeDeb(ctx context.Context, deb string, t *tree) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	merged := t.merge(out, superfluous)
	_, drained := io.Copy(io.Discard, out) // tar ends before its padding does
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("dpkg-deb: %w\n%s", err, said.String())
	}
	return errors.Join(merged, drained)
}

var dropped = []string{
	"/usr/share/doc", "/usr/share/man", "/usr/share/info", "/usr/share/locale", "/usr/share/lintian",
	"/usr/share/bug", "/usr/share/bash-completion", "/usr/share/initramfs-tools",
	"/etc/init.d", "/lib/systemd", "/usr/lib/systemd",
}

// superfluous says what no container needs of a package.
func superfluous(p string) bool {
	for _, d := range dropped {
		if p == d || strings.HasPrefix(p, d+"/") {
			return true
		}
	}
	return false
}
