package storage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newDisk returns a prepared folder of volumes, and checks at the end of the
// test that Cleanup leaves nothing of it.
func newDisk(t *testing.T) disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if _, err := os.Stat(loopControl); err != nil {
		t.Skipf("this machine has no loop devices: %v", err)
	}
	if _, err := exec.LookPath("mkfs.xfs"); err != nil {
		t.Skipf("volumes of enforced size need xfsprogs: %v", err)
	}
	d := disk{root: filepath.Join(resolve(t.TempDir()), "volumes")}
	t.Cleanup(func() {
		for range 2 { // it can be called again
			if err := Cleanup(d.root); err != nil {
				t.Error(err)
			}
		}
		d.checkNothingLeft(t)
	})
	if err := Prepare(t.Context(), d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d disk) checkNothingLeft(t *testing.T) {
	t.Helper()
	mounts, err := readMounts()
	for _, m := range mounts {
		if under(d.root, m.path) {
			t.Errorf("%s is still mounted", m.path)
		}
	}
	check(t, err)
	// The kernel frees the device of a detached mount a little later.
	eventually(t, func() error { return d.checkLoops(0) })
}

func (d disk) checkLoops(want int) error {
	devices, err := loopsUnder(d.root)
	if len(devices) != want {
		return fmt.Errorf("got loop devices %q, want %d", devices, want)
	}
	return err
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// fill writes to a file until the disk is full and returns how much fitted in.
func fill(t *testing.T, path string) int64 {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(t, err)
	defer file.Close()
	for block := bytes.Repeat([]byte("x"), 1<<16); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("got %v, want ENOSPC", err)
	}
	info, err := file.Stat()
	check(t, err)
	return info.Size()
}

func TestEnforcedSize(t *testing.T) {
	d := newDisk(t)
	path, err := d.createImage(t.Context(), "v", 32*mebibyte)
	check(t, err)
	if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
		t.Errorf("a new volume holds %v, %v", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != volumeMode {
		t.Errorf("got %v, %v, want mode %o", info.Mode(), err, volumeMode)
	}
	data := filepath.Join(path, "data")
	before := fill(t, data)
	if before < 20*mebibyte || before > 32*mebibyte {
		t.Errorf("32 MiB volume took %d bytes", before)
	}

	check(t, d.grow(t.Context(), "v", 64*mebibyte))
	check(t, d.grow(t.Context(), "v", 64*mebibyte)) // it can be done again
	if after := fill(t, data); after < before+28*mebibyte || after > 64*mebibyte {
		t.Errorf("64 MiB volume took %d bytes, %d before", after, before)
	}

	check(t, d.remove("v"))
	check(t, d.remove("v"))
	eventually(t, func() error { return d.checkLoops(0) })
	d.checkFiles(t)
}

// checkFiles checks that nothing but the empty folder of images is left.
func (d disk) checkFiles(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{d.root + "/[^.]*", d.image("*") + "*"} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left are %q, %v", left, err)
		}
	}
}

func TestCreateImageAgain(t *testing.T) {
	d := newDisk(t)
	path, err := d.createImage(t.Context(), "v", 1)
	check(t, err)
	check(t, os.WriteFile(path+"/kept", nil, 0o600))
	_, err = d.createImage(t.Context(), "v", 1)
	check(t, err)
	if _, err := os.Stat(path + "/kept"); err != nil {
		t.Error(err)
	}
	check(t, d.checkLoops(1))
}

// A reboot takes the mounts; Prepare brings them back.
func TestRemount(t *testing.T) {
	d := newDisk(t)
	path, err := d.createImage(t.Context(), "v", minImage)
	check(t, err)
	check(t, os.WriteFile(path+"/kept", nil, 0o600))
	check(t, Cleanup(d.root))
	if _, err := os.Stat(path + "/kept"); !os.IsNotExist(err) {
		t.Fatalf("Cleanup has not unmounted: %v", err)
	}

	check(t, os.WriteFile(d.image("broken"), []byte("not a file system"), 0o600))
	checkError(t, Prepare(t.Context(), d.root), []string{"volume broken"})
	if _, err := os.Stat(path + "/kept"); err != nil {
		t.Errorf("the other volume is not mounted: %v", err)
	}
	if _, err := os.Stat(d.folder("broken")); !os.IsNotExist(err) {
		t.Errorf("a folder stands in for the broken volume: %v", err)
	}
}

// An interrupted attempt must not be taken for a file system.
func TestFormatFails(t *testing.T) {
	d := newDisk(t)
	t.Setenv("PATH", "")
	_, err := d.createImage(t.Context(), "v", minImage)
	checkError(t, err, []string{"mkfs.xfs", "xfsprogs"})
	d.checkFiles(t)
}

// node starts a process in a mount namespace like a node's.
func (d disk) node(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "slave", "sleep", "60")
	check(t, command.Start())
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	eventually(t, func() error {
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", command.Process.Pid))
		if !strings.Contains(string(mounts), "master:") {
			return errors.Join(errors.New("the node has no namespace of its own"), err)
		}
		return nil
	})
	return command
}

func (d disk) seenBy(t *testing.T, node *exec.Cmd, id string) bool {
	t.Helper()
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", node.Process.Pid))
	check(t, err)
	return strings.Contains(string(mounts), " "+d.folder(id)+" ")
}

func TestNodesSeeMounts(t *testing.T) {
	d := newDisk(t)
	node := d.node(t)
	check(t, Prepare(t.Context(), d.root)) // must not cut the node off
	_, err := d.createImage(t.Context(), "v", minImage)
	check(t, err)
	if !d.seenBy(t, node, "v") {
		t.Error("the node does not see the volume")
	}
	check(t, d.remove("v"))
	if d.seenBy(t, node, "v") {
		t.Error("the node still sees the volume")
	}
}

func TestRemoveInUse(t *testing.T) {
	d := newDisk(t)
	path, err := d.createImage(t.Context(), "v", minImage)
	check(t, err)
	file, err := os.Create(path + "/open")
	check(t, err)
	defer file.Close()

	check(t, d.remove("v"))
	if _, err := file.WriteString("still works"); err != nil {
		t.Error(err)
	}
	check(t, file.Close())
	eventually(t, func() error { return d.checkLoops(0) })
}

func TestCleanupTouchesNothingElse(t *testing.T) {
	d := newDisk(t)
	// A neighbour whose path begins with the same characters.
	neighbour := disk{root: d.root + "-2"}
	check(t, Prepare(t.Context(), neighbour.root))
	t.Cleanup(func() { check(t, Cleanup(neighbour.root)) })
	_, err := neighbour.createImage(t.Context(), "v", minImage)
	check(t, err)

	check(t, Cleanup(d.root))
	check(t, neighbour.checkLoops(1))
	if mounts, err := mountsAt(neighbour.folder("v")); err != nil || len(mounts) != 1 {
		t.Errorf("the neighbour's volume has mounts %v, %v", mounts, err)
	}
}
