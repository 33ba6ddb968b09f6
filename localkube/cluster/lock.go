package cluster

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock makes sure that one localkube at a time changes the clusters of this machine.
func lock(progress io.Writer) (unlock func(), err error) {
	for {
		f, err := lockOnce(progress)
		if err != nil {
			return nil, err
		}
		// The last cluster's `down` deletes the file: a lock on a deleted file excludes no process.
		if current(f) {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
	}
}

func lockOnce(progress io.Writer) (*os.File, error) {
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return f, nil
	}
	fmt.Fprintln(progress, "waiting for another localkube to finish")
	return f, unix.Flock(int(f.Fd()), unix.LOCK_EX)
}

func current(f *os.File) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(held, named)
}
