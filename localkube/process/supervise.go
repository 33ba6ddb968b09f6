package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

const (
	// lookEvery is how often a supervisor looks at its programs. One look at five programs takes 1.4 ms.
	lookEvery = time.Second
	// firstBackoff and maxBackoff bound the time between two restarts of a program that keeps ending. A program that ran
	// for twice the maximum starts from the beginning.
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
)

// Supervisor restarts programs that end by themselves. A program that was stopped on purpose stays stopped.
type Supervisor struct {
	// Programs returns the programs as they are to be run now.
	Programs func() ([]Program, error)
	// Out gets a line for every restart.
	Out io.Writer

	backoff *flowcontrol.Backoff
}

// Run supervises until ctx ends.
func (s *Supervisor) Run(ctx context.Context) {
	s.backoff = flowcontrol.NewBackOff(firstBackoff, maxBackoff)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if err := s.look(now); err != nil {
				_, _ = fmt.Fprintln(s.Out, now.Format(time.RFC3339), err)
			}
		}
	}
}

// look restarts each program that has ended and whose backoff is over.
func (s *Supervisor) look(now time.Time) error {
	programs, err := s.Programs()
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range programs {
		if p.Running() || p.History().Stopped || s.backoff.IsInBackOffSinceUpdate(p.Record, now) {
			continue
		}
		s.backoff.Next(p.Record, now)
		restarted, err := p.restart(now)
		if restarted {
			_, _ = fmt.Fprintf(s.Out, "%s %s had ended and was started again\n", now.Format(time.RFC3339), p.Group.Name())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// restart starts the program and counts it, unless another localkube has started or stopped it meanwhile.
func (p Program) restart(now time.Time) (done bool, err error) {
	unlock, err := p.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	r := p.History()
	if r.Stopped || p.Running() {
		return false, nil
	}
	if err := p.launch(); err != nil {
		return false, err
	}
	r.Restarts++
	r.LastRestart = now
	return true, p.save(r)
}
