// Package host tells whether this machine can carry a cluster, and installs the few programs that come from Debian.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// elsewhere is the way out for machines that cannot carry a cluster.
const elsewhere = "use kind or any other cluster instead, through KUBECONFIG"

// minFree is the free space that a first build and a small cluster need, in bytes.
const minFree = 3 << 30

// packages are the Debian packages that a cluster needs, by a file that each brings.
var packages = map[string]string{
	"containernetworking-plugins": "/usr/lib/cni/ptp",
	"conntrack":                   "conntrack",
	"iproute2":                    "ip",
	"iptables":                    "iptables",
	"mount":                       "losetup",
	"nftables":                    "nft",
	"runc":                        "runc",
	"util-linux":                  "nsenter",
	"xfsprogs":                    "mkfs.xfs",
}

// Check tells everything that keeps this machine from carrying a cluster, and what to do about it.
func Check() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("localkube needs Linux, this is %s: %s", runtime.GOOS, elsewhere)
	}
	if err := CheckRoot(); err != nil {
		return err
	}
	return errors.Join(checkKernel(), checkSpace("/var/lib"))
}

// CheckRoot tells whether this process may make namespaces, mounts and links.
func CheckRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("localkube makes namespaces, mounts and network links, which only root may: run it with sudo, or %s", elsewhere)
	}
	return nil
}

// checkKernel looks for what a node is made of.
func checkKernel() error {
	var missing []string
	for _, ns := range []string{"pid", "mnt", "net", "uts", "ipc"} {
		if _, err := os.Stat("/proc/self/ns/" + ns); err != nil {
			missing = append(missing, ns+" namespaces")
		}
	}
	if !hasFilesystem("overlay") && exec.Command("modprobe", "overlay").Run() != nil {
		missing = append(missing, "overlay file system")
	}
	if len(missing) > 0 {
		return fmt.Errorf("this kernel has no %s: boot one that has, or %s", strings.Join(missing, ", no "), elsewhere)
	}
	return nil
}

func hasFilesystem(name string) bool {
	data, _ := os.ReadFile("/proc/filesystems")
	return slices.Contains(strings.Fields(string(data)), name)
}

// checkSpace tells whether the disk of the folder has room.
func checkSpace(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < minFree {
		return fmt.Errorf("%s has %d MiB free, a cluster needs %d MiB: free some, or mount a larger disk there", dir, free>>20, uint64(minFree)>>20)
	}
	return nil
}

// InstallPackages installs the Debian packages that are missing, and says so.
func InstallPackages(ctx context.Context, out io.Writer) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing programs, and no apt-get to install them: install what Debian calls %s, or %s", list, elsewhere)
	}
	fmt.Fprintln(out, "installing from Debian:", list)
	install := append([]string{"install", "--yes", "--no-install-recommends"}, missing...)
	if apt(ctx, install...) == nil {
		return nil
	}
	// The package lists of a fresh machine are empty or old.
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, install...)
}

func missingPackages() []string {
	var missing []string
	for name, file := range packages {
		if _, err := exec.LookPath(file); err != nil {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
