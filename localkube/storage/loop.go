package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	loopControl = "/dev/loop-control"
	// loopMajor is the device number of loop devices (admin-guide/devices.txt of
	// the Linux documentation).
	loopMajor = 7
	// attachTries bounds the tries to get a loop device that another process
	// takes first.
	attachTries = 20
)

// mountImage mounts the XFS file system in the image file at path.
func mountImage(image, path string) error {
	device, err := attach(image)
	if err != nil {
		return err
	}
	// From now on the mount keeps the loop device; see configure.
	defer device.Close()
	// discard gives the space of deleted files back to the host.
	err = unix.Mount(device.Name(), path, "xfs", 0, "discard")
	if errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("this kernel has no XFS, which a volume of enforced size needs: %w", err)
	}
	return wrap("mount "+device.Name(), err)
}

// attach puts the image file behind a free loop device, which goes away by
// itself when it is closed and not mounted.
func attach(image string) (*os.File, error) {
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("this machine has no loop devices, which a volume of enforced size needs: %w", err)
	}
	defer control.Close()
	for range attachTries {
		device, err := tryAttach(control, file)
		if !errors.Is(err, unix.EBUSY) {
			return device, err
		}
	}
	return nil, fmt.Errorf("no loop device could be had in %d tries", attachTries)
}

// tryAttach fails with EBUSY if another process was faster.
func tryAttach(control, file *os.File) (*os.File, error) {
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, fmt.Errorf("get a free loop device: %w", err)
	}
	device, err := openLoop(number)
	if err != nil {
		return nil, err
	}
	if err := configure(device, file); err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return device, nil
}

// openLoop opens a loop device, and makes its node where /dev is not the
// kernel's own, as in a container.
func openLoop(number int) (*os.File, error) {
	path := fmt.Sprintf("/dev/loop%d", number)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(loopMajor, uint32(number))))
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, wrap("make "+path, err)
		}
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}

// configure connects device and file. With autoclear the kernel disconnects them
// when nothing uses the device any more, so a crash at any point leaks nothing.
func configure(device, file *os.File) error {
	config := unix.LoopConfig{Fd: uint32(file.Fd())}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	copy(config.Info.File_name[:len(config.Info.File_name)-1], file.Name())
	return wrap("configure "+device.Name(), unix.IoctlLoopConfigure(int(device.Fd()), &config))
}

// refreshLoop makes the loop device behind a mount take the size of its file.
func (m mount) refreshLoop() error {
	if m.major != loopMajor {
		return fmt.Errorf("%s is not mounted from a loop device", m.path)
	}
	device, err := openLoop(m.minor)
	if err != nil {
		return err
	}
	defer device.Close()
	err = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_CAPACITY, 0)
	return wrap("grow "+device.Name(), err)
}

// loopsUnder returns the paths of the loop devices whose file is, or before its
// deletion was, below root.
func loopsUnder(root string) ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	var devices []string
	for _, file := range files {
		// An unreadable file is that of a device which has just gone.
		backing, err := os.ReadFile(file)
		if err == nil && under(root, strings.TrimSpace(string(backing))) {
			block := filepath.Dir(filepath.Dir(file))
			devices = append(devices, filepath.Join("/dev", filepath.Base(block)))
		}
	}
	return devices, err
}

// detach disconnects a loop device from its file, at once or when its last user
// has gone.
func detach(path string) error {
	device, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer device.Close()
	err = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0)
	if errors.Is(err, unix.ENXIO) { // it is not connected
		return nil
	}
	return wrap("detach "+path, err)
}
