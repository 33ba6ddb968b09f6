//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// start starts the program with its clock so far ahead of the machine's. A program without libc reads the clock from
// code that the kernel maps into it (the vDSO), and no library can be put in between; so that code is replaced before
// the program's first instruction, by a call of the kernel that adds the offset.
func start(program string, args []string, offset time.Duration) (*os.Process, error) {
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if offset == 0 {
		err := cmd.Start()
		return cmd.Process, err
	}
	// Only the thread that started a traced process may touch it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var stopped syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &stopped, 0, nil); err != nil {
		return nil, err
	}
	if err := shift(cmd.Process.Pid, offset); err != nil {
		return nil, fmt.Errorf("the clock cannot be moved: %w", err)
	}
	return cmd.Process, syscall.PtraceDetach(cmd.Process.Pid)
}

// shift replaces clock_gettime in the stopped process.
func shift(pid int, offset time.Duration) error {
	if runtime.GOARCH != "amd64" {
		return errors.New("the code is known for amd64 only")
	}
	base, err := vdso(pid)
	if err != nil {
		return err
	}
	at, err := clockGettime(pid, base)
	if err != nil {
		return err
	}
	_, err = syscall.PtracePokeText(pid, base+at, moved(int32(offset/time.Second)))
	return err
}

// moved is clock_gettime with an offset in seconds for the wall clock, CLOCK_REALTIME, which is 0.
func moved(seconds int32) []byte {
	code := []byte{
		0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228 (clock_gettime)
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x75, 0x07, // jnz to the return
		0x48, 0x81, 0x06, // add qword [rsi], seconds
	}
	return append(binary.LittleEndian.AppendUint32(code, uint32(seconds)), 0xc3) // ret
}

// vdso is where the kernel has mapped its code, by what it told the program.
func vdso(pid int) (uintptr, error) {
	const sysinfoEHDR = 33
	told, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return 0, err
	}
	for ; len(told) >= 16; told = told[16:] {
		if binary.LittleEndian.Uint64(told) == sysinfoEHDR {
			return uintptr(binary.LittleEndian.Uint64(told[8:])), nil
		}
	}
	return 0, errors.New("the kernel maps no vDSO")
}

// clockGettime is where the function is in the mapping.
func clockGettime(pid int, base uintptr) (uintptr, error) {
	image := make([]byte, 2*os.Getpagesize())
	if _, err := syscall.PtracePeekData(pid, base, image); err != nil {
		return 0, err
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return uintptr(s.Value), nil
		}
	}
	return 0, errors.New("the vDSO has no clock_gettime")
}
