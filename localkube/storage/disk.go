package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// imageFolder below the root holds the images of volumes of enforced size.
	imageFolder = ".images"
	imageSuffix = ".img"

	mebibyte = 1 << 20
	// minImage is the least size that XFS can be made with.
	minImage = 16 * mebibyte
	// smallImage is the size below which mkfs.xfs refuses to work, unless told
	// that it is not for a production system; see its option --unsupported.
	smallImage = 300 * mebibyte

	// volumeMode lets a pod of any user write, also without an fsGroup; the
	// mode of the root keeps the users of the host out.
	volumeMode = 0o777
	rootMode   = 0o700
)

// disk is a folder of volumes. A volume is a folder in it, or for an enforced
// size the mount point of an image.
type disk struct {
	root string
}

func (d disk) folder(id string) string { return filepath.Join(d.root, id) }

func (d disk) image(id string) string {
	return filepath.Join(d.root, imageFolder, id+imageSuffix)
}

// createFolder makes a volume without a limit and returns its path.
func (d disk) createFolder(id string) (string, error) {
	path := d.folder(id)
	if err := os.MkdirAll(path, rootMode); err != nil {
		return "", err
	}
	// Not by mkdir, which the umask would apply to.
	return path, os.Chmod(path, volumeMode)
}

// createImage makes a volume with a file system of size bytes and returns the
// path that it is mounted at.
func (d disk) createImage(ctx context.Context, id string, size int64) (string, error) {
	if err := d.format(ctx, id, size); err != nil {
		return "", err
	}
	if err := d.mount(id); err != nil {
		return "", err
	}
	return d.folder(id), os.Chmod(d.folder(id), volumeMode)
}

// format makes the image if there is none. It gets its name only when it is
// complete, so that an interrupted attempt leaves nothing to be mounted.
//
// The file system is XFS, because ext4 does not grow while it is mounted unless
// the process has CAP_SYS_RESOURCE (ext4_resize_begin in Linux), which root in a
// sandbox often lacks; and because a new XFS is an empty folder, as databases
// insist on, without lost+found.
func (d disk) format(ctx context.Context, id string, size int64) error {
	image := d.image(id)
	if _, err := os.Stat(image); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(image), rootMode); err != nil {
		return err
	}
	draft := image + ".new"
	size = imageSize(size)
	if err := makeSparse(draft, size); err != nil {
		return err
	}
	args := []string{"-q", draft}
	if size < smallImage {
		args = append(args, "--unsupported")
	}
	if err := run(ctx, "mkfs.xfs", args...); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return os.Rename(draft, image)
}

func makeSparse(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}

// imageSize rounds up to whole mebibytes, as loop devices and file systems
// consist of blocks.
func imageSize(size int64) int64 {
	return max(minImage, (size+mebibyte-1)/mebibyte*mebibyte)
}

// mount mounts a volume's image unless it is mounted. After a failure there is
// no folder, so that no pod writes to what should have been the mount point.
func (d disk) mount(id string) error {
	path := d.folder(id)
	mounts, err := mountsAt(path)
	if err != nil || len(mounts) > 0 {
		return err
	}
	if err := os.MkdirAll(path, rootMode); err != nil {
		return err
	}
	if err := mountImage(d.image(id), path); err != nil {
		return errors.Join(fmt.Errorf("volume %s: %w", id, err), os.Remove(path))
	}
	return nil
}

// remount mounts every image that is not mounted, as after a reboot.
func (d disk) remount(ctx context.Context) error {
	images, err := filepath.Glob(d.image("*"))
	var failures []error
	for _, image := range images {
		id := strings.TrimSuffix(filepath.Base(image), imageSuffix)
		failures = append(failures, ctx.Err(), d.mount(id))
	}
	return errors.Join(append(failures, err)...)
}

// grow gives a mounted volume of enforced size more room, while pods use it. For
// a volume without a limit there is nothing to do.
func (d disk) grow(ctx context.Context, id string, size int64) error {
	image := d.image(id)
	info, err := os.Stat(image)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if size = imageSize(size); info.Size() < size {
		if err := os.Truncate(image, size); err != nil {
			return err
		}
	}
	if err := d.mount(id); err != nil {
		return err
	}
	return growMounted(ctx, d.folder(id))
}

// growMounted extends the file system mounted at path to the end of its image.
func growMounted(ctx context.Context, path string) error {
	mounts, err := mountsAt(path)
	if err != nil {
		return err
	}
	if len(mounts) == 0 {
		return fmt.Errorf("%s is not mounted", path)
	}
	if err := mounts[len(mounts)-1].refreshLoop(); err != nil {
		return err
	}
	return run(ctx, "xfs_growfs", path)
}

// remove deletes a volume, whether pods still hold it or not: the kernel keeps
// for them what they have open, and frees the loop device and the space after
// the last of them.
func (d disk) remove(id string) error {
	path := d.folder(id)
	mounts, err := mountsAt(path)
	if err != nil {
		return err
	}
	for range mounts {
		if err := unmount(path); err != nil {
			return err
		}
	}
	if err := os.Remove(d.image(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(path)
}

// unmount takes away the mount at path, for those too that still use it. A path
// where nothing is mounted, or that does not exist, is no error.
func unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return wrap("unmount "+path, err)
}

// run runs a tool of xfsprogs; the error holds what it printed.
func run(ctx context.Context, name string, args ...string) error {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: a volume of enforced size needs it, install xfsprogs", err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(output)))
	}
	return nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
