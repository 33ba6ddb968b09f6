package node

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// InitCommand is the hidden command of localkube that is the first process of a node: `localkube node-init node.json`.
const InitCommand = "node-init"

// readyFile is the inherited file that gets one byte when the node's mounts are there.
const readyFile = 4

// Init turns the namespaces of the calling process, which must be new, into a node, and then only reaps orphans: the
// programs of the node are started by [Boot], so that its caller sees their errors.
func Init(specFile string) error {
	n, err := read(specFile)
	if err != nil {
		return err
	}
	if os.Getpid() != 1 {
		return errors.New("this command is the first process of a node; use `localkube node start`")
	}
	if err := n.prepare(); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	ready := os.NewFile(readyFile, "ready")
	if _, err := ready.Write([]byte{1}); err != nil {
		return fmt.Errorf("the parent process of node %s is not there: %w", n.Name, err)
	}
	_ = ready.Close()
	reap()
	return nil
}

// reap waits for every process that loses its parent, for ever.
func reap() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	for range died {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

func (n Node) prepare() error {
	if err := unix.Sethostname([]byte(n.Name)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := isolateMounts(n.Volumes); err != nil {
		return err
	}
	resolv, _ := filepath.EvalSymlinks("/etc/resolv.conf")
	if err := mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return err
	}
	if err := mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	if err := n.bindDisk(); err != nil {
		return err
	}
	if err := n.bindResolv(resolv); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
}

// diskFolders are the node's own folders and the stock paths they appear at.
var diskFolders = map[string]string{
	"kubelet":    "/var/lib/kubelet",
	"containerd": "/var/lib/containerd",
	"pods":       "/var/log/pods",
	"containers": "/var/log/containers",
	"cni":        "/etc/cni/net.d",
	"cni-state":  "/var/lib/cni",
}

// MountPoints are the folders that must exist on the machine, because nodes mount their own over them.
func MountPoints() []string { return slices.Sorted(maps.Values(diskFolders)) }

// bindDisk puts the node's own folders where the stock paths are.
func (n Node) bindDisk() error {
	for source, target := range diskFolders {
		source = filepath.Join(n.Dir, source)
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
		if err := mount(source, target, "", unix.MS_BIND|unix.MS_REC); err != nil {
			return err
		}
	}
	return nil
}

// bindResolv gives the node name servers it can reach, for pulling images. The file may be a link into /run, which is
// empty now.
func (n Node) bindResolv(target string) error {
	if target == "" {
		return nil
	}
	if _, err := os.Stat(target); err != nil {
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, resolvConf(), 0o644)
	}
	return mount(filepath.Join(n.Dir, "resolv.conf"), target, "", unix.MS_BIND)
}

func mount(source, target, kind string, flags uintptr) error {
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}
