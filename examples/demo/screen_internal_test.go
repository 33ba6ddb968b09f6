package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// terminalOf opens a pseudo-terminal that reports the width.
func terminalOf(t *testing.T, width uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// The table fits the terminal, also one that reports no width, as script and docker do.
func TestTableFitsAnyTerminal(t *testing.T) {
	for width, most := range map[uint16]int{0: usual, 1: usual, 20: 20, 200: 200} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			master, slave := terminalOf(t, width)
			s := &terminal{out: slave}
			var v view
			v.object.Status.Ready = "1/3"
			v.pods = []corev1.Pod{{}}
			v.pods[0].Name = strings.Repeat("a-long-name-", 10)
			s.begin(v)
			s.show(v, time.Second)
			s.show(v, 2*time.Second)
			shown := make([]byte, 4096)
			n, err := master.Read(shown)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(shown[:n])) {
				text := strings.TrimRight(line[strings.LastIndex(line, "\x1b[2K")+1:], "\r\n")
				if len([]rune(text)) > most+len("\x1b[2K") {
					t.Errorf("a line of %d columns: %q", len([]rune(text)), text)
				}
			}
			if !strings.Contains(string(shown[:n]), "  etcdcluster/") {
				t.Errorf("no table: %q", shown[:n])
			}
		})
	}
}

// Into a pipe or a file the demo prints lines without control characters, and each fact once.
func TestWithoutTerminal(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	s := newScreen(write)
	if s.tick() != nil {
		t.Error("nothing has to be redrawn every second")
	}
	var v view
	s.begin(v)
	s.show(v, time.Second) // nothing is known yet
	v.object.Status.Ready = "1/3"
	v.events = []eventsv1.Event{{Reason: "Bootstrapping", Note: "3 members start the cluster together."}}
	s.show(v, 2*time.Second)
	s.show(v, 3*time.Second)
	s.begin(v)
	s.show(v, time.Second)
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	shown, err := io.ReadAll(read)
	want := "    2.0 s  why: Bootstrapping: 3 members start the cluster together.\n    2.0 s  1/3 ready\n    1.0 s  1/3 ready\n"
	if err != nil || string(shown) != want {
		t.Errorf("got %q, %v, want %q", shown, err, want)
	}
}
