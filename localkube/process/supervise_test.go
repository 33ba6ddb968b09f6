package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	testclock "k8s.io/utils/clock/testing"

	"github.com/governor-dev/governor/localkube/cgroup"
)

// TestMain lets the test binary stand for localkube, which programs call on their way into a control group.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == EnterCommand {
		fmt.Fprintln(os.Stderr, Enter(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// supervised is a real program in a control group of its own, and its supervisor.
func supervised(t *testing.T, args ...string) (Program, *Supervisor, *testclock.FakeClock) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("control groups belong to root")
	}
	root := cgroup.Group(fmt.Sprintf("/localkube-test-%d", os.Getpid()))
	dir := t.TempDir()
	p := Program{
		Group: root.Child("program"), Args: args,
		Log: filepath.Join(dir, "log"), Record: filepath.Join(dir, "programs", "program.json"),
	}
	t.Cleanup(func() {
		if err := errors.Join(root.Kill(5*time.Second), root.Remove()); err != nil {
			t.Error(err)
		}
	})
	clock := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return p, &Supervisor{
		Programs: func() ([]Program, error) { return []Program{p}, nil },
		Out:      &bytes.Buffer{}, backoff: flowcontrol.NewFakeBackOff(firstBackoff, maxBackoff, clock),
	}, clock
}

// lookAfter moves the clock and lets the supervisor look.
func (s *Supervisor) lookAfter(t *testing.T, clock *testclock.FakeClock, d time.Duration) {
	t.Helper()
	clock.Step(d)
	if err := s.look(clock.Now()); err != nil {
		t.Fatal(err)
	}
}

func (p Program) end(t *testing.T) {
	t.Helper()
	if err := p.Group.Kill(5 * time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestSupervisorRestartsWhatEndsByItself(t *testing.T) {
	p, s, clock := supervised(t, "/bin/sleep", "1000")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	s.lookAfter(t, clock, time.Second)
	if got := p.History(); got.Restarts != 0 {
		t.Errorf("a program that runs was restarted: %+v", got)
	}
	p.end(t)
	s.lookAfter(t, clock, time.Second)
	if got := p.History(); !p.Running() || got.Restarts != 1 || !got.LastRestart.Equal(clock.Now()) {
		t.Errorf("running %v, history %+v; want one restart at %s", p.Running(), got, clock.Now())
	}
}

func TestSupervisorLeavesWhatWasStoppedOnPurpose(t *testing.T) {
	p, s, clock := supervised(t, "/bin/sleep", "1000")
	if err := errors.Join(p.Start(), p.Stop()); err != nil {
		t.Fatal(err)
	}
	s.lookAfter(t, clock, time.Hour)
	if p.Running() || p.History() != (Record{Stopped: true}) {
		t.Errorf("running %v, history %+v; want it stopped", p.Running(), p.History())
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.end(t)
	s.lookAfter(t, clock, time.Second)
	if !p.Running() || p.History().Restarts != 1 {
		t.Errorf("running %v, history %+v; want it supervised again after its start", p.Running(), p.History())
	}
}

// TestSupervisorBacksOff ends the program as soon as it was started, for ten minutes of looks, and lets it run then.
func TestSupervisorBacksOff(t *testing.T) {
	p, s, clock := supervised(t, "/bin/sleep", "1000")
	var pauses []time.Duration
	last := clock.Now()
	for range 600 {
		s.lookAfter(t, clock, lookEvery)
		if at := p.History().LastRestart; at.After(last) {
			pauses, last = append(pauses, at.Sub(last)), at
			p.end(t)
		}
	}
	if len(pauses) < 20 || len(pauses) > 30 || pauses[1] != firstBackoff || pauses[len(pauses)-1] != maxBackoff {
		t.Errorf("pauses %v; want 20 to 30 that grow from %s to %s", pauses, firstBackoff, maxBackoff)
	}
	s.lookAfter(t, clock, maxBackoff)
	s.lookAfter(t, clock, 2*maxBackoff+time.Second)
	p.end(t)
	s.lookAfter(t, clock, lookEvery)
	if !p.Running() {
		t.Error("a program that had run for long must be restarted at once")
	}
}

func TestUnreadableRecordIsEmpty(t *testing.T) {
	p := Program{Record: filepath.Join(t.TempDir(), "record")}
	if err := os.WriteFile(p.Record, []byte(`{"restarts":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.History(); got != (Record{}) {
		t.Errorf("got %+v", got)
	}
	if got := (Program{}).History(); got != (Record{}) {
		t.Errorf("a program without a record has %+v", got)
	}
}
