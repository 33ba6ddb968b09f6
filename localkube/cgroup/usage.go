package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Memory is what the group and the groups inside it hold in anonymous memory and shared memory, in bytes; page cache,
// which the kernel gives back when asked, is left out.
func (g Group) Memory() int64 {
	for _, key := range []string{"total_rss", "anon"} {
		if n, ok := g.statistic("memory.stat", key); ok {
			return n
		}
	}
	return 0
}

// CPU is the processor time that the group and the groups inside it have used so far.
func (g Group) CPU() time.Duration {
	if usec, ok := g.statistic("cpu.stat", "usage_usec"); ok {
		return time.Duration(usec) * time.Microsecond
	}
	ns, _ := g.statistic("cpuacct.usage", "")
	return time.Duration(ns)
}

// statistic is the number after key in the first hierarchy's file of that name that has it.
func (g Group) statistic(file, key string) (int64, bool) {
	found, _ := hierarchies()
	for _, h := range found {
		data, err := os.ReadFile(filepath.Join(h.dir(g), file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(line), key)
			if n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64); ok && err == nil {
				return n, true
			}
		}
	}
	return 0, false
}
