package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var (
	// errResigned says that the leader could not renew its lease and has stopped acting before another can lead.
	errResigned = errors.New("the lease could not be renewed")
	// errOverrun says that a step was still under way when the lease ended. Only the end of the process stops it.
	errOverrun = errors.New("the lease ended while a step was still under way")
)

// candidate is what one process keeps of the election while managers come and go. Its identity is the same in all of
// them, so that a lease nobody has taken meanwhile is renewed at once.
type candidate struct {
	identity string

	mu    sync.Mutex
	seen  []byte    // the record of another leader
	since time.Time // when this process saw it first
}

func newCandidate() (*candidate, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("cannot name a candidate for the lease: %w", err)
	}
	return &candidate{identity: host + "_" + string(uuid.NewUUID())}, nil
}

// unchanged returns for how long this process has known the record.
func (c *candidate) unchanged(raw []byte) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.seen, raw) {
		c.seen, c.since = slices.Clone(raw), time.Now()
	}
	return time.Since(c.since)
}

// lease is the lock of one manager. The leader resigns when it could not renew the lease for two thirds of its duration.
// That leaves a third for what is under way to end, and is sooner than client-go's elector gives up.
type lease struct {
	resourcelock.Interface
	candidate *candidate
	duration  time.Duration
	resign    func(error)
	// over is closed when another may lead and this process has to be at rest.
	over chan struct{}

	mu       sync.Mutex
	until    time.Time // when a lease that is not renewed ends; zero if it is not held
	resigned bool
	lapse    *time.Timer
}

func newLease(lock resourcelock.Interface, c *candidate, duration time.Duration, resign func(error)) *lease {
	return &lease{Interface: lock, candidate: c, duration: duration, resign: resign, over: make(chan struct{})}
}

// lock is the lease in the API. Its client gives up in time to try again before the lease lapses.
func (o *flags) lock(cfg *rest.Config, identity string) (*resourcelock.LeaseLock, error) {
	space := o.leaderSpace
	if space == "" {
		raw, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, fmt.Errorf("cannot find the namespace of the lease: %w; set --leader-elect-namespace, or --leader-elect=false", err)
		}
		space = strings.TrimSpace(string(raw))
	}
	cfg = rest.AddUserAgent(terse(cfg), "leader-election")
	cfg.Timeout = max(time.Second, o.leaseDuration()/3)
	client, err := coordinationv1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare the leader election: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: space, Name: o.Lease}, Client: client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, nil
}

// Get implements resourcelock.Interface. A lease that this process has seen unchanged for its whole duration is free,
// also if the elector is new: another leader has not renewed it. While this process leads, the lease of another means
// that it was taken away, and the leader resigns at once. After that the lease is left alone:
// to release one that cannot be reached would take longer than it lasts.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.hasResigned() {
		return nil, nil, errResigned
	}
	record, raw, err := l.Interface.Get(ctx)
	if err != nil || record.HolderIdentity == "" || record.HolderIdentity == l.Identity() {
		return record, raw, err
	}
	l.leave()
	if l.candidate.unchanged(raw) > time.Duration(record.LeaseDurationSeconds)*time.Second {
		record.HolderIdentity = ""
	}
	return record, raw, nil
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lease) write(ctx context.Context, record resourcelock.LeaderElectionRecord, put func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if l.hasResigned() {
		return errResigned
	}
	began := time.Now() // others count from when they see it, which is later
	if err := put(ctx, record); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if record.HolderIdentity == l.Identity() && !l.resigned {
		l.renewed(began)
	}
	if record.HolderIdentity == "" { // released, which happens when nothing acts any more
		l.until = time.Time{}
		l.rest()
	}
	return nil
}

func (l *lease) renewed(at time.Time) {
	l.rest()
	l.until = at.Add(l.duration)
	l.lapse = time.AfterFunc(time.Until(l.until)-l.duration/3, l.leave)
}

func (l *lease) rest() {
	if l.lapse != nil {
		l.lapse.Stop()
	}
}

// leave resigns, if this process leads.
func (l *lease) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resigned || l.until.IsZero() {
		return
	}
	l.resigned = true
	l.rest()
	time.AfterFunc(time.Until(l.until), func() { close(l.over) })
	l.resign(errResigned)
}

func (l *lease) hasResigned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resigned
}

// held reports whether this process may act. It is asked before each step, because a process that was suspended goes on
// in the middle of one.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.resigned && time.Now().Before(l.until)
}

// end is closed when another may lead. There is none without leader election.
func (l *lease) end() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.over
}
