package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// span is the duration and the CPU time of an action. On a shared machine the CPU time is
// more stable.
type span struct {
	Seconds float64 `json:"seconds"`

	// AllCPUSeconds is the CPU time of the API server, etcd, the operator if it runs, and
	// the benchmark with its calls and its fake controllers.
	AllCPUSeconds float64 `json:"allCPUSeconds"`

	// OthersCores is the number of cores that all other processes used.
	OthersCores float64 `json:"othersCores"`
}

func (s span) plus(other span) span {
	both := span{Seconds: s.Seconds + other.Seconds, AllCPUSeconds: s.AllCPUSeconds + other.AllCPUSeconds}
	both.OthersCores = (s.OthersCores*s.Seconds + other.OthersCores*other.Seconds) / both.Seconds
	return both
}

func timed(do func() error) (span, error) {
	began, before, busy := time.Now(), processesCPU(), machineCPU()
	err := do()
	s := span{Seconds: time.Since(began).Seconds(), AllCPUSeconds: (processesCPU() - before).Seconds()}
	s.OthersCores = max(0, (machineCPU()-busy).Seconds()-s.AllCPUSeconds) / s.Seconds
	return s, err
}

// tick is the time unit in /proc, the same on every Linux.
const tick = 10 * time.Millisecond

// processesCPU returns the CPU time of this process and its running children.
func processesCPU() time.Duration {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	total := time.Duration(0)
	for _, path := range stats {
		s, err := readStat(path)
		if err == nil && (s.parent == os.Getpid() || s.pid == os.Getpid()) {
			total += s.cpu
		}
	}
	return total
}

// stat is the part of /proc/<pid>/stat that is read.
type stat struct {
	pid, parent int
	cpu         time.Duration
}

func readStat(path string) (stat, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return stat{}, err // the process has exited
	}
	pid, rest, _ := bytes.Cut(raw, []byte(" "))
	// The second field is the command, which may contain spaces.
	fields := bytes.Fields(rest[bytes.LastIndexByte(rest, ')')+1:])
	return stat{
		pid: number(pid), parent: number(fields[1]),
		cpu: time.Duration(number(fields[11])+number(fields[12])) * tick,
	}, nil
}

func number(field []byte) int {
	n, _ := strconv.Atoi(string(field))
	return n
}

// machineCPU returns the CPU time of all processes on the machine.
func machineCPU() time.Duration {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	fields := bytes.Fields(line)
	busy := 0
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		busy += number(fields[i])
	}
	return time.Duration(busy) * tick
}
