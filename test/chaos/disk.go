package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// sizedClass is a StorageClass whose volumes are file systems of their own: one can be full, or hang, without the others.
const sizedClass = "chaos-sized"

// filler takes all space of a volume that is left.
const filler = "chaos-filler"

// ioctls of a file system (linux/fs.h).
const (
	freeze = 0xc0045877 // FIFREEZE
	thaw   = 0xc0045878 // FITHAW
)

// hasDisk reports whether the composition needs volumes that are file systems of their own.
func hasDisk(c chaos.Composition, all chaos.Catalogue) bool {
	for _, move := range c {
		if m, ok := all.Named(move.Name); ok && m.Object.Kind == chaos.Disk.Kind {
			return true
		}
	}
	return false
}

// sized creates the StorageClass like the default one, but with the size enforced.
func (a *arena) sized(ctx context.Context) error {
	var classes storagev1.StorageClassList
	if err := a.api.List(ctx, &classes); err != nil {
		return err
	}
	for _, like := range classes.Items {
		if like.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		class := like.DeepCopy()
		class.ObjectMeta = metav1.ObjectMeta{Name: sizedClass}
		class.Parameters = map[string]string{"enforceSize": "true"}
		if err := a.api.Create(ctx, class); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	}
	return errors.New("no StorageClass is the default one")
}

// hurtDisk fills or freezes the volume of a member, through the eyes of its process.
func (v *adversary) hurtDisk(ctx context.Context, what chaos.Manipulation, target int) (does.Done, error) {
	pods := v.targets(ctx, what, target)
	if len(pods) == 0 {
		return does.Done{}, does.ErrNothing
	}
	if v.hangs {
		return does.Done{}, fmt.Errorf("a volume accepts no write, and the adversary would hang with it: %w", does.ErrNothing)
	}
	dir, err := v.volumeOf(ctx, pods[0])
	if err != nil {
		return does.Done{}, err
	}
	done := does.Done{Objects: []string{pods[0].Name}}
	switch what.Detail {
	case chaos.DiskFull:
		done.Undo = once(dir, func() error { return unix.Unlinkat(int(dir.Fd()), filler, 0) })
		return done, fill(filepath.Join(dir.Name(), filler))
	case chaos.DiskReadOnly:
		done.Undo = once(dir, func() error { return remount(dir, "rw") })
		return done, makeReadOnly(ctx, pods[0], dir)
	}
	if err := onDisk(dir, freeze); err != nil {
		return done, errors.Join(err, dir.Close()) // it hangs already
	}
	v.hangs = true
	if what.Detail == chaos.DiskSlow {
		done.Undo = once(dir, slow(dir))
		return done, nil
	}
	done.Undo = once(dir, func() error { return onDisk(dir, thaw) })
	return done, nil
}

// makeReadOnly ends the process of the pod, and remounts its volume before the next process has opened a
// file for writing. Kubernetes starts it again, and it finds a volume that refuses writes.
func makeReadOnly(ctx context.Context, p corev1.Pod, dir *os.File) error {
	if err := signalPod(p, syscall.SIGKILL); err != nil {
		return err
	}
	return await(ctx, 5*time.Second, time.Millisecond, func(context.Context) error { return remount(dir, "ro") })
}

// remount changes a flag of the mounted file system itself, whatever mount namespace it is in.
func remount(dir *os.File, flag string) error {
	fs, err := unix.Fspick(int(dir.Fd()), "", unix.FSPICK_EMPTY_PATH|unix.FSPICK_CLOEXEC)
	if err != nil {
		return fmt.Errorf("fspick %s: %w", dir.Name(), err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigSetFlag(fs, flag); err != nil {
		return fmt.Errorf("fsconfig %s: %w", flag, err)
	}
	if err := unix.FsconfigReconfigure(fs); err != nil {
		return fmt.Errorf("remount %s: %w", flag, err)
	}
	return nil
}

// Of each second a slow volume accepts writes for a fifth. That needs no control group, and so works
// with every version of them.
const slowFor, swiftFor = 800 * time.Millisecond, 200 * time.Millisecond

// slow has a frozen volume thaw for a moment each second until the returned function is called.
func slow(dir *os.File) func() error {
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- onDisk(dir, thaw)
				return
			case <-time.After(slowFor):
			}
			if onDisk(dir, thaw) == nil {
				time.Sleep(swiftFor)
				_ = onDisk(dir, freeze) // it may be unmounted by now
			}
		}
	}()
	return sync.OnceValue(func() error {
		close(stop)
		if err := <-ended; err != nil && !errors.Is(err, unix.EINVAL) { // not frozen
			return err
		}
		return nil
	})
}

// once undoes what lasts until that succeeds, and then closes the directory.
func once(dir *os.File, undo func() error) func(context.Context) error {
	over := false
	return func(context.Context) error {
		if over {
			return nil
		}
		if err := undo(); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		over = true
		return dir.Close()
	}
}

// volumeOf opens the directory of the member's volume. The file keeps the volume reachable after its pod has ended.
func (v *adversary) volumeOf(ctx context.Context, p corev1.Pod) (*os.File, error) {
	for _, volume := range p.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		var claim corev1.PersistentVolumeClaim
		if err := v.api.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}, &claim); err != nil {
			return nil, err
		}
		if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != sizedClass {
			return nil, fmt.Errorf("the volume of %s is no file system of its own: %w", p.Name, does.ErrNothing)
		}
		return openIn(p, volume.Name)
	}
	return nil, does.ErrNothing
}

// openIn opens the mount point of the pod's volume in the file system of one of its processes.
func openIn(p corev1.Pod, volume string) (*os.File, error) {
	var path string
	for _, mount := range p.Spec.Containers[0].VolumeMounts {
		if mount.Name == volume {
			path = mount.MountPath
		}
	}
	processes, err := processesOf(p)
	if err != nil || path == "" {
		return nil, errors.Join(err, does.ErrNothing)
	}
	for _, process := range processes {
		dir, err := os.Open(filepath.Join("/proc", process, "root", path))
		if err == nil {
			return dir, nil
		}
	}
	return nil, fmt.Errorf("no process of %s has %s: %w", p.Name, path, does.ErrNothing)
}

// fill writes a file until no space is left.
func fill(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	block := []byte(strings.Repeat("x", 1<<20))
	for {
		if _, err := f.Write(block); errors.Is(err, unix.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func onDisk(dir *os.File, request uint) error {
	if err := unix.IoctlSetInt(int(dir.Fd()), request, 0); err != nil {
		return fmt.Errorf("ioctl %x of %s: %w", request, dir.Name(), err)
	}
	return nil
}
