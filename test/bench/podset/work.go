package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// work returns the CPU time, in seconds, of this process and its running children: API
// server, etcd, both controllers and the fake kubelets. On a shared machine it is more
// stable than the duration.
func work() float64 {
	const ticks = 100 // per second, on every Linux
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	total := 0
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // the process has exited
		}
		pid, _, _ := bytes.Cut(raw, []byte(" "))
		// The second field is the command, which may contain spaces.
		fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		if us := os.Getpid(); number(pid) == us || number(fields[1]) == us {
			total += number(fields[11]) + number(fields[12])
		}
	}
	return float64(total) / ticks
}

func number(field []byte) int {
	n, _ := strconv.Atoi(string(field))
	return n
}
