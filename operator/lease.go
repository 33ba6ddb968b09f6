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
	// errResigned reports that the leader could not renew its lease and has stopped acting before another can lead.
	errResigned = errors.New("the lease could not be renewed")
	// errOverrun reports that a step was still under way when the lease expired. Only the exit of the process stops it.
	errOverrun = errors.New("the lease ended while a step was still under way")
)

// candidate is the state of the election that one process keeps across its managers. All of them have the same identity,
// so that a new manager renews a lease at once if no other process has taken it.
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
// The last third is for steps under way to finish, and client-go's elector would give up later.
type lease struct {
	resourcelock.Interface
	candidate *candidate
	duration  time.Duration
	resign    func(error)
	// over is closed when the lease expires: another process may lead, and this one must not act.
	over chan struct{}

	mu       sync.Mutex
	until    time.Time // when a lease that is not renewed ends; zero if it is not held
	resigned bool
	lapse    *time.Timer
}

func newLease(lock resourcelock.Interface, c *candidate, duration time.Duration, resign func(error)) *lease {
	return &lease{Interface: lock, candidate: c, duration: duration, resign: resign, over: make(chan struct{})}
}

// lock returns the Lease in the API. Its client times out early enough for a retry before the lease expires.
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

// Get implements resourcelock.Interface. A lease that this process has observed unchanged for its whole duration is free,
// also for a new elector: the other leader has not renewed it. If another process holds the lease while this one leads,
// the leader resigns at once. After that, this process does not write the lease: the release of an unreachable lease
// would take longer than the lease is valid.
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
	began := time.Now() // other processes count from a later time, when they observe the renewal
	if err := put(ctx, record); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if record.HolderIdentity == l.Identity() && !l.resigned {
		l.renewed(began)
	}
	if record.HolderIdentity == "" { // released, which happens after all steps have stopped
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

// held reports whether this process may act. It is checked before each step, because a suspended process may resume
// after the lease has expired.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.resigned && time.Now().Before(l.until)
}

// end is closed when another process may lead; nil without leader election.
func (l *lease) end() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.over
}
