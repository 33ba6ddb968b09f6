package image

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// config is how the image's container runs.
func (r Recipe) config() v1.Config {
	c := v1.Config{
		Entrypoint: r.Entrypoint,
		Cmd:        r.Cmd,
		User:       r.user(),
		WorkingDir: r.Workdir,
		Labels:     r.Labels,
	}
	if _, given := r.Env["PATH"]; !given {
		c.Env = append(c.Env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	for _, k := range sortedKeys(r.Env) {
		c.Env = append(c.Env, k+"="+r.Env[k])
	}
	for _, p := range r.ExposedPorts {
		if c.ExposedPorts == nil {
			c.ExposedPorts = map[string]struct{}{}
		}
		if !strings.Contains(p, "/") {
			p += "/tcp"
		}
		c.ExposedPorts[p] = struct{}{}
	}
	return c
}

func (r Recipe) user() string {
	switch {
	case r.UserName != "":
		return r.UserName
	case r.User != "":
		return r.User
	}
	return defaultUser
}

// fill puts everything into the tree, the recipe's own wishes last.
func (w *work) fill(ctx context.Context, t *tree) error {
	if d := w.recipe.Debian; d != nil {
		if err := w.unpack(ctx, *d, t); err != nil {
			return err
		}
	}
	if err := w.recipe.writeAccounts(t); err != nil {
		return err
	}
	if err := w.addPrograms(t); err != nil {
		return err
	}
	for _, f := range w.recipe.Files {
		if err := f.addTo(t); err != nil {
			return err
		}
	}
	return w.recipe.addExtras(t)
}

func (w *work) addPrograms(t *tree) error {
	if w.recipe.Go == nil {
		return nil
	}
	entries, err := os.ReadDir(w.programs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		to := path.Join("/usr/local/bin", e.Name())
		if dir := w.recipe.Go.Directory; dir != "" {
			to = path.Join(dir, e.Name())
		}
		if err := t.copyFile(filepath.Join(w.programs, e.Name()), to, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (f File) addTo(t *tree) error {
	mode, err := parseMode(f.Mode, 0o755)
	if err != nil {
		return err
	}
	if f.Content != "" {
		return t.file(f.Target, mode, strings.NewReader(f.Content))
	}
	return t.copyFile(f.Source, f.Target, mode)
}

func (r Recipe) addExtras(t *tree) error {
	if r.Workdir != "" {
		if at, _ := t.place(r.Workdir); t.entries[at] == nil {
			if err := t.folder(r.Workdir, 0o755, 0, 0); err != nil {
				return err
			}
		}
	}
	for _, d := range r.Directories {
		mode, err := parseMode(d.Mode, 0o755)
		if err != nil {
			return err
		}
		uid, gid, _ := owner(d.Owner)
		if err := t.folder(d.Path, mode, uid, gid); err != nil {
			return err
		}
	}
	for _, at := range sortedKeys(r.Links) {
		h := tar.Header{Name: at, Typeflag: tar.TypeSymlink, Linkname: r.Links[at], Mode: 0o777}
		if err := t.add(h, nil); err != nil {
			return err
		}
	}
	return nil
}

// writeAccounts makes the files that name users and say where hosts are
// looked up. Debian's packages make them by scripts, which are not run.
func (r Recipe) writeAccounts(t *tree) error {
	uid, gid, _ := owner(r.User)
	passwd := "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"
	group := "root:x:0:\nnobody:x:65534:\n"
	if r.User == "" {
		uid, gid, _ = owner(defaultUser)
	}
	if name := r.UserName; name != "" && name != "root" {
		passwd += fmt.Sprintf("%s:x:%d:%d:%s:/:/sbin/nologin\n", name, uid, gid, name)
		group += fmt.Sprintf("%s:x:%d:\n", name, gid)
	} else {
		passwd += "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
		group += "nonroot:x:65532:\n"
	}
	for name, text := range map[string]string{
		"/etc/passwd":        passwd,
		"/etc/group":         group,
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	} {
		if err := t.file(name, 0o644, strings.NewReader(text)); err != nil {
			return err
		}
	}
	return nil
}
