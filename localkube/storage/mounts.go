package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is a line of /proc/self/mountinfo.
type mount struct {
	id, parent   int
	major, minor int
	path         string
	// peers is the peer group that mounts are propagated in, "" for none.
	peers string
}

// readMounts lists the mounts of this process's namespace, a parent always
// before its children.
func readMounts() ([]mount, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var mounts []mount
	for line := range strings.Lines(string(content)) {
		m, err := parseMount(line)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// unescape undoes how the kernel writes blanks in paths, proc_pid_mountinfo(5).
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// parseMount parses a line as described in proc_pid_mountinfo(5).
func parseMount(line string) (mount, error) {
	var m mount
	var root, path, options string
	_, err := fmt.Sscanf(line, "%d %d %d:%d %s %s %s",
		&m.id, &m.parent, &m.major, &m.minor, &root, &path, &options)
	if err != nil {
		return m, fmt.Errorf("mountinfo line %q: %w", line, err)
	}
	m.path = unescape.Replace(path)
	before, _, _ := strings.Cut(line, " - ")
	for _, field := range strings.Fields(before)[6:] {
		if group, ok := strings.CutPrefix(field, "shared:"); ok {
			m.peers = group
		}
	}
	return m, nil
}

// mountsAt returns the mounts at exactly this path, the topmost last.
func mountsAt(path string) ([]mount, error) {
	mounts, err := readMounts()
	return slices.DeleteFunc(mounts, func(m mount) bool { return m.path != path }), err
}

// resolve returns the path as the kernel will show it in mountinfo.
func resolve(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	// What does not exist yet has no symbolic link at its end.
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(parent, filepath.Base(path))
	}
	return path
}

func under(root, path string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// makeShared creates root and makes it a mount point with a peer group of its
// own, so that mounts made below it later reach the nodes, whose namespaces were
// cloned from the host's, and nothing else. A group that exists is kept, as the
// nodes hang on it.
func makeShared(root string) error {
	if err := os.MkdirAll(root, rootMode); err != nil {
		return err
	}
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	own, mounted := find(mounts, func(m mount) bool { return m.path == root })
	if mounted && hasOwnPeers(mounts, own) {
		return nil
	}
	if !mounted {
		if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
			return wrap("bind mount "+root, err)
		}
	}
	// A bind mount starts in its source's group; private takes it out, shared
	// then makes a new group.
	for _, flag := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", root, "", flag, ""); err != nil {
			return wrap("set propagation of "+root, err)
		}
	}
	return nil
}

// hasOwnPeers tells whether a mount is shared, but not with the mount it is on.
func hasOwnPeers(mounts []mount, m mount) bool {
	parent, _ := find(mounts, func(other mount) bool { return other.id == m.parent })
	return m.peers != "" && m.peers != parent.peers
}

// find returns the last match, which for mounts at one path is the topmost.
func find(mounts []mount, match func(mount) bool) (mount, bool) {
	for _, m := range slices.Backward(mounts) {
		if match(m) {
			return m, true
		}
	}
	return mount{}, false
}

// Cleanup unmounts everything at and below root on the host and detaches the
// loop devices of its images. It deletes nothing, writes nothing to the disk,
// and touches nothing elsewhere. What has been cleaned up already, in part or
// in whole, is no error. The nodes should be gone before: what their processes
// still hold goes away only with them.
func Cleanup(root string) error {
	root = resolve(root)
	if root == "/" {
		return errors.New("refusing to unmount everything below /")
	}
	// Detach first: while it is mounted a device stays what it is, and goes away
	// with its last mount. Afterwards its number may be someone else's.
	devices, err := loopsUnder(root)
	failures := []error{err}
	for _, device := range devices {
		failures = append(failures, detach(device))
	}
	mounts, err := readMounts()
	failures = append(failures, err)
	for _, m := range slices.Backward(mounts) {
		if under(root, m.path) {
			failures = append(failures, unmount(m.path))
		}
	}
	return errors.Join(failures...)
}
