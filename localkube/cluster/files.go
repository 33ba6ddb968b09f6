package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// createdFile lists the folders outside localkube's own that it has made, outermost first.
var createdFile = filepath.Join(home, "created")

func readCreated() []string {
	data, _ := os.ReadFile(createdFile)
	return strings.Fields(string(data))
}

func writeCreated(dirs []string) error {
	return os.WriteFile(createdFile, []byte(strings.Join(dirs, "\n")+"\n"), 0o600)
}

// missingAncestors are dir and those of its ancestors that do not exist, outermost first.
func missingAncestors(dir string) []string {
	var missing []string
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		missing = append(missing, dir)
	}
	slices.Reverse(missing)
	return missing
}

// removeCreated removes the folders that localkube made, innermost first, but keeps those that are in use.
func removeCreated() error {
	for _, dir := range slices.Backward(readCreated()) {
		err := os.Remove(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// linkFile gives the file a second name, or copies it where that is not possible. A file that is there already with the
// same size and time is left, and keeps its time, by which nodes know what they have imported.
func linkFile(from, to string) error {
	source, err := os.Stat(from)
	if err != nil {
		return err
	}
	if target, err := os.Stat(to); err == nil && (os.SameFile(source, target) || sameStamp(source, target)) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	_ = os.Remove(to)
	if os.Link(from, to) == nil {
		return nil
	}
	if err := copyFile(from, to); err != nil {
		return err
	}
	return os.Chtimes(to, source.ModTime(), source.ModTime())
}

func sameStamp(a, b fs.FileInfo) bool { return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) }

// copyFile copies atomically: no reader sees half of the file.
func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}

// giveToCaller makes the user who called sudo the owner of the file.
func giveToCaller(file string) error {
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	if err != nil {
		return nil
	}
	gid, err := strconv.Atoi(os.Getenv("SUDO_GID"))
	if err != nil {
		return nil
	}
	return os.Chown(file, uid, gid)
}
