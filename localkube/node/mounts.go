package node

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// isolateMounts cuts the mount namespace off from the machine's, so that nothing leaks in either direction, with one
// exception: a volume that the machine mounts later below the volumes folder appears on the node too. Inside the node all
// mounts are shared, as a kubelet expects for containers that mount.
func isolateMounts(volumes string) error {
	if err := propagate("/", unix.MS_REC|unix.MS_SLAVE); err != nil {
		return err
	}
	volumes, err := filepath.EvalSymlinks(volumes)
	if err != nil {
		return err
	}
	points, err := mountPoints()
	if err != nil {
		return err
	}
	for _, point := range points {
		if point == volumes || strings.HasPrefix(point, volumes+"/") {
			continue
		}
		if err := propagate(point, unix.MS_PRIVATE); err != nil {
			return err
		}
	}
	return propagate("/", unix.MS_REC|unix.MS_SHARED)
}

func propagate(point string, flags uintptr) error {
	// A mount point that another mount hides cannot be reached, and needs not be.
	if err := unix.Mount("", point, "", flags, ""); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("propagation of %s: %w", point, err)
	}
	return nil
}

// mountPoints are the mount points of the calling process, in the order in which they were mounted.
func mountPoints() ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var points []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		if fields := strings.Fields(s.Text()); len(fields) > 4 {
			points = append(points, unescape(fields[4]))
		}
	}
	return points, s.Err()
}

// unescape undoes the octal escapes of mountinfo (proc_pid_mountinfo(5)): \040 is a blank.
func unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(b))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
