package operator

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// term is the duration of the lease in these tests, which is that of the flag's default.
const term = 15 * time.Second

// register is the API server's lease.
type register struct {
	mu       sync.Mutex
	record   *resourcelock.LeaderElectionRecord
	revision int
}

func (r *register) write(read int, record resourcelock.LeaderElectionRecord) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if read != r.revision {
		return read, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "l", errRefused)
	}
	r.record = &record
	r.revision++
	return r.revision, nil
}

func (r *register) read() (*resourcelock.LeaderElectionRecord, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.record == nil {
		return nil, 0
	}
	record := *r.record
	return &record, r.revision
}

// line is how one process reaches the register.
type line struct {
	*register
	identity string
	cut      atomic.Bool
	lost     atomic.Bool // writes arrive, and their answers do not
	known    int
}

func (l *line) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.cut.Load() {
		return nil, nil, errRefused
	}
	record, revision := l.read()
	if record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "l")
	}
	l.known = revision
	raw, err := json.Marshal(record)
	return record, raw, err
}

func (l *line) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *line) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.cut.Load() {
		return errRefused
	}
	revision, err := l.write(l.known, record)
	if err == nil && l.lost.Load() {
		return errRefused
	}
	l.known = revision
	return err
}

func (l *line) RecordEvent(string) {}
func (l *line) Identity() string   { return l.identity }
func (l *line) Describe() string   { return l.identity }

// process is an operator's: it elects with the same elector as the manager, and starts again when it resigns.
type process struct {
	line      *line
	candidate *candidate
	lease     atomic.Pointer[lease]
	lives     atomic.Int32
}

func newProcess(r *register, name string) *process {
	return &process{line: &line{register: r, identity: name}, candidate: &candidate{identity: name}}
}

func (p *process) acts() bool {
	l := p.lease.Load()
	return l != nil && l.held()
}

func (p *process) run(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		p.live(ctx, t)
	}
}

func (p *process) live(ctx context.Context, t *testing.T) {
	p.lives.Add(1)
	for p.line.cut.Load() && ctx.Err() == nil {
		time.Sleep(time.Second) // of the bubble's own clock
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l := newLease(p.line, p.candidate, term, stop)
	p.lease.Store(l)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: term, RenewDeadline: term * 2 / 3, RetryPeriod: term / 5, ReleaseOnCancel: true, Name: "l",
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {
			if ctx.Err() == nil {
				t.Errorf("%s: the elector gave up before the leader had resigned", p.line.identity)
				stop(nil)
			}
		}},
	})
	if err != nil {
		t.Error(err)
		return
	}
	elector.Run(ctx)
}

// until waits until the process acts, or does not, and returns how long that took.
func (p *process) until(t *testing.T, acts bool) time.Duration {
	t.Helper()
	began := time.Now()
	for p.acts() != acts {
		if time.Since(began) > time.Hour {
			t.Fatalf("%s: waited an hour for acts %v", p.line.identity, acts)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

func TestLeaderResignsInTimeAndLeadsAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		p := newProcess(&register{}, "a")
		running.Go(func() { p.run(ctx, t) })
		p.until(t, true)
		p.line.cut.Store(true)
		if left := p.until(t, false); left > term*2/3 {
			t.Errorf("it acted for %s without a lease", left)
		}
		time.Sleep(20 * time.Second)
		p.line.cut.Store(false)
		if again := p.until(t, true); again > 2*time.Second {
			t.Errorf("it leads %s after the outage, and no other replica could have", again)
		}
		stop()
		running.Wait()
	})
}

// A standby has watched the leader's lease. That it starts again itself does not begin the wait again.
func TestStandbyThatStartsAgainRemembersTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		r := &register{}
		a, b := newProcess(r, "a"), newProcess(r, "b")
		running.Go(func() { a.run(ctx, t) })
		a.until(t, true)
		first, end := context.WithCancel(ctx)
		var former sync.WaitGroup
		former.Go(func() { b.run(first, t) })
		time.Sleep(10 * time.Second)
		a.line.cut.Store(true)
		time.Sleep(10 * time.Second)
		end()
		former.Wait()
		time.Sleep(10 * time.Second)
		running.Go(func() { b.run(ctx, t) })
		if took := b.until(t, true); took > time.Second {
			t.Errorf("it leads after %s, though the lease ended seconds ago", took)
		}
		stop()
		running.Wait()
	})
}

func TestLeaderResignsWhenItsLeaseIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		p := newProcess(&register{}, "a")
		running.Go(func() { p.run(ctx, t) })
		p.until(t, true)
		record, revision := p.line.read()
		record.HolderIdentity = "thief"
		if _, err := p.line.write(revision, *record); err != nil {
			t.Fatal(err)
		}
		if left := p.until(t, false); left > term/5+time.Second {
			t.Errorf("it noticed after %s", left)
		}
		stop()
		running.Wait()
	})
}

// Whatever the network does to two processes, they never act at the same time, and one of them leads in the end.
func TestTwoNeverActAtTheSameTime(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 0))
			var running sync.WaitGroup
			ctx, stop := context.WithCancel(t.Context())
			r := &register{}
			both := []*process{newProcess(r, "a"), newProcess(r, "b")}
			for _, p := range both {
				running.Go(func() { p.run(ctx, t) })
			}
			for range 2000 {
				time.Sleep(time.Duration(chance.IntN(1000)) * time.Millisecond)
				if both[0].acts() && both[1].acts() {
					t.Fatalf("seed %d: both act", seed)
				}
				if p := both[chance.IntN(2)]; chance.IntN(20) == 0 {
					p.line.cut.Store(chance.IntN(2) == 0)
					p.line.lost.Store(chance.IntN(3) == 0)
				}
			}
			for _, p := range both {
				p.line.cut.Store(false)
				p.line.lost.Store(false)
			}
			time.Sleep(2 * term)
			if both[0].acts() == both[1].acts() {
				t.Errorf("seed %d: afterwards a leads %v, b leads %v", seed, both[0].acts(), both[1].acts())
			}
			stop()
			running.Wait()
		})
	}
}

// A step that does not end must not outlive the lease, so the process ends.
func TestLeaseIsOverWhenAnotherMayLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &register{}
		why := make(chan error, 1)
		l := newLease(&line{register: r, identity: "a"}, &candidate{identity: "a"}, term, func(err error) { why <- err })
		began := time.Now()
		if err := l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}); err != nil {
			t.Fatal(err)
		}
		if err := <-why; !errors.Is(err, errResigned) || time.Since(began) != term*2/3 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if <-l.end(); time.Since(began) != term {
			t.Errorf("it is over after %s", time.Since(began))
		}
	})
}
