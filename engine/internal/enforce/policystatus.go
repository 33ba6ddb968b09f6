package enforce

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// Note records which policies hold a step of the object. If that is new, their status is
// computed again.
func (r *Store) Note(holder string, holding []string) {
	if all := r.All.Load(); all == nil || len(*all) == 0 {
		return // a new policy reconciles all objects that it selects
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.holding[holder]
	if known && slices.Equal(was, holding) {
		return
	}
	if r.holding == nil {
		r.holding = map[string][]string{}
	}
	r.holding[holder] = holding
	r.markDirty()
}

// Drop forgets a deleted object.
func (r *Store) Drop(holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waves, holder)
	if _, known := r.holding[holder]; known {
		delete(r.holding, holder)
		r.markDirty()
	}
}

// DropApp forgets all objects of an application that stops.
func (r *Store) DropApp(app string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.waves, func(holder string, _ func()) bool { return strings.HasPrefix(holder, app+" ") })
	maps.DeleteFunc(r.holding, func(holder string, _ []string) bool { return strings.HasPrefix(holder, app+" ") })
	r.markDirty()
}

// markDirty makes the status of policies be computed soon.
func (r *Store) markDirty() {
	select {
	case r.stirred <- struct{}{}:
	default:
	}
}

// policyStatusWriter writes the status of policies, when it is new: at rest it writes nothing. It is
// the leader's.
type policyStatusWriter struct {
	mgr   manager.Manager
	rules *Store
	now   func() time.Time
	// agreed remembers what was found out about pairs of policies, and asked what of it
	// is still needed.
	agreed, asked map[[2]*policy.Policy][]string
}

const (
	// gather is how long changes are gathered before the status is written.
	gather = time.Second
	// retryAfter is how long a failed reading waits before the next.
	retryAfter = 5 * time.Second
	// soonest is the shortest wait for a window, so that a clock that is slow makes no loop.
	soonest = time.Millisecond
	// arrival is how long a new leader waits for its applications to start.
	arrival = 5 * time.Second
)

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *policyStatusWriter) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (c *policyStatusWriter) Start(ctx context.Context) error {
	sleep(ctx, arrival)
	for ctx.Err() == nil {
		due := c.write(ctx)
		c.rest(ctx, due)
		sleep(ctx, gather)
	}
	return nil
}

// rest returns when something has changed, or a window opens or closes.
func (c *policyStatusWriter) rest(ctx context.Context, due time.Time) {
	var opens <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(max(soonest, due.Sub(c.now())))
		defer timer.Stop()
		opens = timer.C
	}
	select {
	case <-ctx.Done():
	case <-c.rules.stirred:
	case <-opens:
	}
}

// write writes what is new in the status of any policy, and returns when it will change
// because of the time.
func (c *policyStatusWriter) write(ctx context.Context) (due time.Time) {
	list := &v1alpha1.OperationPolicyList{}
	if err := c.rules.policies.List(ctx, list); err != nil || len(list.Items) == 0 {
		return due
	}
	census, err := c.rules.count(ctx)
	if err != nil {
		return c.now().Add(retryAfter)
	}
	c.asked = map[[2]*policy.Policy][]string{}
	defer func() { c.agreed = c.asked }()
	for i := range list.Items {
		p := &list.Items[i]
		read, counted := census.of(p.Name)
		if read == nil || !counted {
			continue // it is heard of, or seen, in a moment
		}
		said, change := read.Window(c.now())
		if !change.IsZero() && (due.IsZero() || change.Before(due)) {
			due = change
		}
		c.update(ctx, p, read, said, census)
	}
	return due
}

func (c *policyStatusWriter) update(ctx context.Context, p *v1alpha1.OperationPolicy, read *policy.Policy, window string, all aggregate) {
	s := all.standings[p.Name]
	s.Against, s.Runs = c.against(read, all), all.runs
	s.NamespacesUnknown = c.rules.namespaces == nil || !c.rules.namespaces.known()
	p = p.DeepCopy()
	before := p.Status.DeepCopy()
	p.Status = v1alpha1.OperationPolicyStatus{
		ObservedGeneration: p.Generation, Selected: int32(s.Selected), Held: int32(s.Held), NextWindow: window,
		Conditions: lifecycle.Merge(before.Conditions, read.Conditions(s), p.Generation, metav1.NewTime(c.now())),
	}
	if equality.Semantic.DeepEqual(*before, p.Status) {
		return
	}
	err := c.mgr.GetClient().Status().Update(ctx, p)
	switch {
	case apierrors.IsConflict(err):
		c.rules.markDirty()
	case client.IgnoreNotFound(err) != nil:
		c.mgr.GetLogger().Error(err, "cannot write the status of a policy", "policy", p.Name)
		c.rules.markDirty()
	}
}

// against is what other policies that select the same objects say otherwise.
func (c *policyStatusWriter) against(p *policy.Policy, all aggregate) []string {
	var said []string
	for _, other := range all.set {
		if !all.together[[2]string{p.Name, other.Name}] {
			continue
		}
		pair := [2]*policy.Policy{p, other}
		sentences, known := c.agreed[pair]
		if !known {
			sentences = p.ConflictsWith(other)
		}
		c.asked[pair] = sentences
		said = append(said, sentences...)
	}
	return said
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
