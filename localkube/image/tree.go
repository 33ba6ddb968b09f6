package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// tree is what an image holds. Contents are spooled to one file, so that a
// large package does not have to fit into memory.
type tree struct {
	entries map[string]*entry
	spool   *os.File
	size    int64
	merged  bool // /bin, /lib, /sbin are links into /usr, as in Debian
}

type entry struct {
	header tar.Header
	offset int64 // of the content in the spool
}

func newTree(dir string, merged bool) (*tree, error) {
	spool, err := os.CreateTemp(dir, "spool-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(spool.Name()) // gone when closed, however this process ends
	t := &tree{entries: map[string]*entry{}, spool: spool, merged: merged}
	if merged {
		for _, d := range mergedFolders {
			if err := t.folder("usr/"+d, 0o755, 0, 0); err != nil {
				return nil, err
			}
			t.entries[d] = &entry{header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: "usr/" + d, Mode: 0o777}}
		}
	}
	return t, nil
}

var mergedFolders = []string{"bin", "lib", "lib64", "sbin"}

func (t *tree) close() { _ = t.spool.Close() }

// place is a path's key: relative, and where it really is if /usr is merged.
func (t *tree) place(p string) (at string, moved bool) {
	at = strings.TrimPrefix(path.Clean("/"+p), "/")
	first, rest, deeper := strings.Cut(at, "/")
	if t.merged && deeper {
		for _, d := range mergedFolders {
			if first == d {
				return "usr/" + d + "/" + rest, true
			}
		}
	}
	return at, false
}

func (t *tree) isMergedLink(at string) bool {
	e := t.entries[at]
	return t.merged && e != nil && e.header.Typeflag == tar.TypeSymlink && e.header.Linkname == "usr/"+at
}

// add puts an entry at its header's name; the last one at a path wins.
func (t *tree) add(h tar.Header, content io.Reader) error {
	at, moved := t.place(h.Name)
	if at == "" || t.isMergedLink(at) {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
	default:
		return fmt.Errorf("%s is neither a file nor a folder nor a link", h.Name)
	}
	if h.Typeflag == tar.TypeLink {
		h.Linkname, _ = t.place(h.Linkname)
	}
	if moved && h.Typeflag == tar.TypeSymlink && strings.HasPrefix(h.Linkname, "../") {
		h.Linkname = path.Join("/", path.Dir(path.Clean("/"+h.Name)), h.Linkname) // one level deeper now
	}
	e := &entry{header: plain(h), offset: t.size}
	if h.Typeflag == tar.TypeReg {
		n, err := io.Copy(io.NewOffsetWriter(t.spool, t.size), content)
		if err != nil {
			return err
		}
		e.header.Size = n
		t.size += n
	}
	t.parents(at)
	t.entries[at] = e
	return nil
}

// plain keeps of a header what belongs to the image.
func plain(h tar.Header) tar.Header {
	return tar.Header{Typeflag: h.Typeflag, Linkname: h.Linkname, Mode: h.Mode & 0o7777, Uid: h.Uid, Gid: h.Gid}
}

func (t *tree) parents(at string) {
	for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
		if t.entries[dir] == nil {
			t.entries[dir] = &entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}
		}
	}
}

func (t *tree) folder(p string, mode int64, uid, gid int) error {
	return t.add(tar.Header{Name: p, Typeflag: tar.TypeDir, Mode: mode, Uid: uid, Gid: gid}, nil)
}

func (t *tree) file(p string, mode int64, content io.Reader) error {
	return t.add(tar.Header{Name: p, Typeflag: tar.TypeReg, Mode: mode}, content)
}

// copyFile takes a file from disk.
func (t *tree) copyFile(source, target string, mode int64) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", source)
	}
	return t.file(target, mode, f)
}

// merge takes a whole tar stream, less what drop names.
func (t *tree) merge(r io.Reader, drop func(p string) bool) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if drop(path.Clean("/" + h.Name)) {
			continue
		}
		if err := t.add(*h, in); err != nil {
			return err
		}
	}
}

// write writes the tree as a tar stream that depends on nothing else: sorted,
// and without the time of its making.
func (t *tree) write(w io.Writer) error {
	out := tar.NewWriter(w)
	var hardlinks []string // after all that they can point to
	for _, at := range sortedKeys(t.entries) {
		if t.entries[at].header.Typeflag == tar.TypeLink {
			hardlinks = append(hardlinks, at)
			continue
		}
		if err := t.writeEntry(out, at); err != nil {
			return err
		}
	}
	for _, at := range hardlinks {
		if err := t.writeEntry(out, at); err != nil {
			return err
		}
	}
	return out.Close()
}

func (t *tree) writeEntry(out *tar.Writer, at string) error {
	e := t.entries[at]
	h := e.header
	h.Name, h.ModTime = at, time.Unix(0, 0)
	if h.Typeflag == tar.TypeDir {
		h.Name += "/"
	}
	if err := out.WriteHeader(&h); err != nil {
		return err
	}
	_, err := io.Copy(out, io.NewSectionReader(t.spool, e.offset, h.Size))
	return err
}
