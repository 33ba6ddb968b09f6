package budget

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// paced is a budget with a clock, and what it woke.
type paced struct {
	*Budget
	at    time.Time
	woken []string
}

func newPaced(limit int) *paced {
	p := &paced{at: time.Unix(1000, 0)}
	p.Budget = New(limit, func() time.Time { return p.at })
	return p
}

// asks is a request of an object such as "ring x/a", with slots of policies. It may have a generation: "ring x/a 2".
func (p *paced) asks(holder string, shares ...policy.BudgetSlot) []lifecycle.Refusal {
	app, key, _ := strings.Cut(holder, " ")
	key, generation, _ := strings.Cut(key, " ")
	namespace, _, _ := strings.Cut(key, "/")
	c := Claim{Holder: app + " " + key, Namespace: namespace, App: app, Shares: shares}
	c.Generation, _ = strconv.ParseInt(generation, 10, 64)
	return p.Ask(c, func() { p.woken = append(p.woken, c.Holder) })
}

func (p *paced) gets(t *testing.T, holder string, shares ...policy.BudgetSlot) {
	t.Helper()
	if refusals := p.asks(holder, shares...); refusals != nil {
		t.Errorf("%s gets no slot: %v", holder, refusals)
	}
}

func (p *paced) waits(t *testing.T, holder, words string, shares ...policy.BudgetSlot) {
	t.Helper()
	refusals := p.asks(holder, shares...)
	if len(refusals) != 1 || !strings.Contains(refusals[0].Message, words) {
		t.Errorf("%s is refused with %v, want %q", holder, refusals, words)
	}
}

func (p *paced) wakes(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(p.woken, want) {
		t.Errorf("woken are %v, want %v", p.woken, want)
	}
	p.woken = nil
}

func TestAFreeSlotWakesTheFirstInLine(t *testing.T) {
	b := newPaced(1)
	b.gets(t, "ring x/a")
	b.gets(t, "ring x/a")
	b.waits(t, "ring x/b", "all 1 slots for disruptive steps are taken, by ring x/a")
	b.waits(t, "ring x/c", "by ring x/a")
	b.Release("ring x/d")
	b.wakes(t)
	b.Release("ring x/a")
	b.wakes(t, "ring x/b")
	b.waits(t, "ring x/c", "the next free slot for a disruptive step goes to ring x/b")
	b.woken = nil
	b.Withdraw("ring x/b")
	b.wakes(t, "ring x/c")
	b.gets(t, "ring x/c")
}

func TestAnApplicationThatStopsHoldsNothing(t *testing.T) {
	b := newPaced(1)
	b.gets(t, "ring x/a")
	b.waits(t, "ring x/b", "taken")
	b.waits(t, "podset x/a", "taken")
	b.ReleaseApp("ring")
	b.woken = nil
	b.gets(t, "podset x/a")
	b.Release("podset x/a")
	b.wakes(t)
}

// An object takes a slot of every pool or of none, and a policy's pool is its own.
func TestBudgetsOfPolicies(t *testing.T) {
	b := newPaced(5)
	pool := func(name string) policy.BudgetSlot {
		return policy.BudgetSlot{Policy: "p", Pool: name, Limit: 1, Among: "of the namespace " + name}
	}
	b.gets(t, "ring x/a", pool("x"))
	b.gets(t, "ring y/a", pool("y"))
	b.waits(t, "ring x/b", "of the namespace x, at most 1 may be disrupted at once, and now it is ring x/a", pool("z"), pool("x"))
	b.gets(t, "ring z/a", pool("z"))
	b.Release("ring z/a")
	b.Release("ring x/a")
	b.gets(t, "ring x/b", pool("x"))
}

func TestNamespacesShareTheSlots(t *testing.T) {
	b := newPaced(3)
	for _, holder := range []string{"ring x/a", "ring x/b", "ring x/c"} {
		b.gets(t, holder)
	}
	b.waits(t, "ring x/d", "taken")
	b.waits(t, "ring y/a", "taken")
	b.waits(t, "ring x/a", "goes to ring y/a") // before its next step it makes room
	b.wakes(t, "ring y/a")
	b.gets(t, "ring y/a")
	b.gets(t, "ring x/b") // two of three are its share
	b.waits(t, "ring z/a", "taken")
	b.Release("ring x/c")
	b.wakes(t, "ring z/a")
	b.gets(t, "ring z/a")
}

func TestApplicationsShareTheSlotsOfANamespace(t *testing.T) {
	b := newPaced(2)
	b.gets(t, "ring x/a")
	b.gets(t, "ring x/b")
	b.waits(t, "ring x/c", "taken")
	b.waits(t, "podset x/a", "taken")
	b.Release("ring x/b")
	b.wakes(t, "podset x/a")
}

func TestASlotWithoutMovesIsFreed(t *testing.T) {
	b := newPaced(1)
	b.gets(t, "ring x/a")
	b.at = b.at.Add(longestHold - time.Second)
	b.waits(t, "ring y/a", "taken")
	b.Moves("ring x/a")
	b.at = b.at.Add(time.Second)
	b.waits(t, "ring y/a", "taken")
	b.at = b.at.Add(longestHold)
	b.gets(t, "ring y/a")
	b.waits(t, "ring x/a", "taken")
}

// An object whose spec changes before each change has settled does not keep the others waiting.
func TestASlotIsForOneGeneration(t *testing.T) {
	b := newPaced(1)
	b.gets(t, "ring x/a 1")
	b.gets(t, "ring x/a 2") // no other waits
	b.waits(t, "ring x/b 1", "taken")
	b.gets(t, "ring x/a 2")
	b.waits(t, "ring x/a 3", "goes to ring x/b")
	b.wakes(t, "ring x/b")
	b.gets(t, "ring x/b 1")
	b.waits(t, "ring x/a 4", "taken")
	b.Release("ring x/b")
	b.gets(t, "ring x/a 5") // it keeps its place in the line
}

// crew is a random fleet: every object asks for a slot, works for some rounds and begins
// again; some get stuck and never give their slot back.
type crew struct {
	*paced
	random     *rand.Rand
	namespaces int
	work       map[string]int // rounds of work left, by holder
	since      map[string]int // how many slots had been granted when an object began to wait
	granted    int
	worst      int // the most grants to other objects that one waited for
}

// Whatever the fleet is, every object gets a slot after at most so many others.
func TestNoObjectStarves(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 11))
		c := &crew{paced: newPaced(1 + random.IntN(4)), random: random, work: map[string]int{}, since: map[string]int{}}
		fleet := c.fleet()
		for range 600 {
			c.at = c.at.Add(time.Minute)
			for _, i := range random.Perm(len(fleet)) {
				c.turn(fleet[i])
			}
		}
		// Each namespace has its turn, each application of it, and each object of that.
		if bound := c.namespaces * 2 * len(fleet); c.worst > bound || c.granted < 2*bound {
			t.Errorf("seed %d: %d slots, %d objects in %d namespaces: one waited for %d of %d grants, want at most %d",
				seed, c.limit, len(fleet), c.namespaces, c.worst, c.granted, bound)
		}
	}
}

// fleet has a crowd of two applications in one namespace, and some objects elsewhere.
func (c *crew) fleet() []string {
	all := []string{"podset crowd/a"}
	for i := range 2 + c.random.IntN(4) {
		all = append(all, fmt.Sprintf("ring crowd/%d", i))
	}
	c.namespaces = 2 + c.random.IntN(2)
	for i := range c.namespaces - 1 {
		all = append(all, fmt.Sprintf("%s ns%d/a", []string{"ring", "podset"}[c.random.IntN(2)], i))
	}
	return all
}

func (c *crew) turn(holder string) {
	switch left := c.work[holder]; {
	case left > 1 && c.random.IntN(40) == 0:
		c.work[holder] = 0 // it is stuck until its time is over, and asks again then
		delete(c.since, holder)
	case left > 1:
		c.work[holder]--
		c.Moves(holder)
	case left == 1:
		c.work[holder] = 0
		c.Release(holder)
	case c.asks(holder) == nil:
		c.work[holder] = 1 + c.random.IntN(3)
		c.granted++
		delete(c.since, holder)
	default:
		if _, waited := c.since[holder]; !waited {
			c.since[holder] = c.granted
		}
		c.worst = max(c.worst, c.granted-c.since[holder])
	}
}
