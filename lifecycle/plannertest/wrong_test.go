package plannertest_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/plannertest"
	"github.com/governor-dev/governor/lifecycle/sim"
	"github.com/governor-dev/governor/test/fakeapp"
)

// wrong is the ring's planner with one mistake.
type wrong struct {
	fakeapp.Planner
	next   func(want *fakeapp.Ring, seen fakeapp.World, now time.Time) lifecycle.Decision
	effect func(want *fakeapp.Ring, seen fakeapp.World, s lifecycle.Step) (during, after fakeapp.World)
	status func(want *fakeapp.Ring, seen fakeapp.World)
}

func (p wrong) Next(want *fakeapp.Ring, seen fakeapp.World, now time.Time) lifecycle.Decision {
	if p.next != nil {
		if d := p.next(want, seen, now); d.Reason != "" {
			return d
		}
	}
	return p.Planner.Next(want, seen, now)
}

func (p wrong) Effect(want *fakeapp.Ring, seen fakeapp.World, s lifecycle.Step) (during, after fakeapp.World) {
	if p.effect != nil {
		return p.effect(want, seen, s)
	}
	return p.Planner.Effect(want, seen, s)
}

func (p wrong) Status(want *fakeapp.Ring, seen fakeapp.World) {
	if p.status != nil {
		p.status(want, seen)
		return
	}
	p.Planner.Status(want, seen)
}

func always(d lifecycle.Decision) func(*fakeapp.Ring, fakeapp.World, time.Time) lifecycle.Decision {
	return func(*fakeapp.Ring, fakeapp.World, time.Time) lifecycle.Decision { return d }
}

func step(name, target string) lifecycle.Step {
	return lifecycle.Step{Name: name, Target: target, Reason: "Wrong", Message: "This is wrong."}
}

func subject(p wrong) plannertest.Subject[*fakeapp.Ring, fakeapp.World] {
	return plannertest.Subject[*fakeapp.Ring, fakeapp.World]{
		Planner: p, Gates: []lifecycle.Gate[*fakeapp.Ring, fakeapp.World]{fakeapp.KeepsQuorum}, Safe: oneLearner,
		Kept: func(want *fakeapp.Ring, seen fakeapp.World) error {
			if len(seen.Members) != want.Spec.Size {
				return fmt.Errorf("there are %d members and %d are wanted", len(seen.Members), want.Spec.Size)
			}
			return nil
		},
	}
}

func oneLearner(seen fakeapp.World) error {
	learners := 0
	for _, m := range seen.Members {
		if m.Listed && !m.Voter {
			learners++
		}
	}
	if learners > 1 {
		return errors.New("there are two learners")
	}
	return nil
}

// mistake is a planner with one, and how long the story is that proves it.
type mistake struct {
	reason  string
	planner wrong
	fault   plannertest.Fault
	says    string
	story   int
}

// impure are those that a single question shows, and what follows from the worst of them.
func impure() map[string]mistake {
	asked := 0
	return map[string]mistake{
		"Memory": {"a rule that remembers how often it was asked",
			wrong{next: func(*fakeapp.Ring, fakeapp.World, time.Time) lifecycle.Decision {
				asked++
				return lifecycle.Block("Wrong", fmt.Sprint(asked))
			}}, plannertest.FaultImpure, "Next answers differently", 0},
		"Clock": {"a rule that looks at the clock",
			wrong{next: func(*fakeapp.Ring, fakeapp.World, time.Time) lifecycle.Decision {
				return lifecycle.WaitFor(step("CaughtUp", "m000000"), time.Now())
			}}, plannertest.FaultImpure, "Next answers differently", 0},
		"Chance": {"an effect that depends on chance",
			wrong{effect: func(_ *fakeapp.Ring, seen fakeapp.World, _ lifecycle.Step) (during, after fakeapp.World) {
				seen.Next = rand.Int()
				return seen, seen
			}}, plannertest.FaultImpure, "Effect answers differently", 1},
		"Meddling": {"an effect that works on its argument",
			wrong{effect: func(want *fakeapp.Ring, seen fakeapp.World, s lifecycle.Step) (during, after fakeapp.World) {
				for i := range seen.Members {
					if seen.Members[i].Name == s.Target {
						seen.Members[i].Pod = fakeapp.Healthy
					}
				}
				return fakeapp.Planner{}.Effect(want, seen, s)
			}}, plannertest.FaultMutatesInput, "Effect changes what it was given", 1},
		"Panic": {"a rule that fails on a ring without members",
			wrong{next: func(_ *fakeapp.Ring, seen fakeapp.World, _ time.Time) lifecycle.Decision {
				_ = seen.Members[0]
				return lifecycle.Decision{}
			}}, plannertest.FaultPanics, "index out of range", 0},
		"RestlessStatus": {"a status that counts",
			wrong{status: func(want *fakeapp.Ring, _ fakeapp.World) { want.Status.Members = append(want.Status.Members, "x") }},
			plannertest.FaultImpure, "the status is never at rest", 0},
		"Circle": {"two rules that want the opposite of each other",
			wrong{next: func(want *fakeapp.Ring, seen fakeapp.World, _ time.Time) lifecycle.Decision {
				if n := len(seen.Members); n == 1 && want.Spec.Size == 1 && seen.Members[0].Pod == fakeapp.Healthy && seen.Members[0].Listed {
					return lifecycle.Proceed(step("Break", seen.Members[0].Name))
				}
				return lifecycle.Decision{}
			}, effect: func(want *fakeapp.Ring, seen fakeapp.World, s lifecycle.Step) (during, after fakeapp.World) {
				if s.Name != "Break" {
					return fakeapp.Planner{}.Effect(want, seen, s)
				}
				m := seen.Members[0]
				m.Pod = fakeapp.Starting
				after = fakeapp.World{Members: []fakeapp.Member{m}, Next: seen.Next}
				return after, after
			}}, plannertest.FaultGateDeadlock, "KeepsQuorum", 1},
	}
}

// fruitless are those that show when the rules are followed.
func fruitless() map[string]mistake {
	return map[string]mistake{
		"NeverEnough": {"a rule that adds and never counts",
			wrong{next: func(*fakeapp.Ring, fakeapp.World, time.Time) lifecycle.Decision {
				return lifecycle.Proceed(step("Grow", ""))
			}, effect: func(_ *fakeapp.Ring, seen fakeapp.World, _ lifecycle.Step) (during, after fakeapp.World) {
				seen.Next++
				return seen, seen
			}}, plannertest.FaultNonTerminating, "do not settle within 500 decisions", 21},
		"NoEffect": {"a step that the author forgot in Effect",
			wrong{next: always(lifecycle.Proceed(step("Defragment", "m000000"))), effect: func(_ *fakeapp.Ring, seen fakeapp.World, _ lifecycle.Step) (during, after fakeapp.World) {
				return seen, seen
			}}, plannertest.FaultStuck, "Defragment m000000", 1},
		"Silence": {"a rule book that says nothing to say that all is well",
			wrong{next: always(lifecycle.Decision{Reason: "x"})}, plannertest.FaultNoDecision, "Next says nothing", 1},
		"Impatience": {"a rule that tries again instead of waiting",
			wrong{next: always(lifecycle.RetryIn(time.Second, "NotYet", ""))}, plannertest.FaultNoDecision, "NotYet", 1},
		"IgnoresDeadline": {"a deadline that Next ignores",
			wrong{next: always(lifecycle.WaitFor(step("CaughtUp", "m000000"), plannertest.TestTime).Until(plannertest.TestTime.Add(time.Minute)))},
			plannertest.FaultIgnoresDeadline, "CaughtUp m000000", 1},
		"Blocked": {"a rule that gives up", wrong{next: always(lifecycle.Block("Tired", "Go away."))}, plannertest.FaultStops, "Tired: Go away.", 1},
		"TooEarly": {"a rule book that is content too early",
			wrong{next: always(lifecycle.Settled("Careless", "All is well."))}, plannertest.FaultNotConverged, "0 members and 1 are wanted", 1},
		"Hasty": {"a second learner beside the first",
			wrong{next: func(_ *fakeapp.Ring, seen fakeapp.World, _ time.Time) lifecycle.Decision {
				if n := len(seen.Members); n > 0 && seen.Members[n-1].Listed && !seen.Members[n-1].Voter {
					return lifecycle.Proceed(step("Add", fmt.Sprintf("m%06d", seen.Next)))
				}
				return lifecycle.Decision{}
			}}, plannertest.FaultUnsafe, "there are two learners", 1},
	}
}

func TestEveryMistakeHasAName(t *testing.T) {
	all := impure()
	maps.Copy(all, fruitless())
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			_, f := subject(c.planner).Survey(fakeapp.SmallWorlds(3))
			if f == nil || f.Fault != c.fault || !strings.Contains(f.Says, c.says) {
				t.Fatalf("%s: found %v, want %s: %s", c.reason, f, c.fault, c.says)
			}
			if len(f.Story) != c.story {
				t.Errorf("the shortest story has %d decisions, want %d: %v", len(f.Story), c.story, f)
			}
		})
	}
}

// Rules that go round in a circle: what one step does, the next one undoes.
func TestCircle(t *testing.T) {
	p := wrong{next: func(_ *fakeapp.Ring, seen fakeapp.World, _ time.Time) lifecycle.Decision {
		return lifecycle.Proceed(step("Turn", fmt.Sprint(seen.Next%2)))
	}, effect: func(_ *fakeapp.Ring, seen fakeapp.World, _ lifecycle.Step) (during, after fakeapp.World) {
		seen.Next = 1 - seen.Next%2
		return seen, seen
	}}
	_, f := subject(p).Survey(fakeapp.SmallWorlds(1))
	if f == nil || f.Fault != plannertest.FaultLoops || len(f.Story) != 3 || !strings.Contains(f.Says, "circle of 2 decisions") ||
		!strings.HasPrefix(f.Story[2], "and again as at 1") {
		t.Errorf("found %v", f)
	}
}

func life(p wrong) sim.Scenario[*fakeapp.Ring, fakeapp.World] {
	return sim.Scenario[*fakeapp.Ring, fakeapp.World]{
		Planner: p, Gates: []lifecycle.Gate[*fakeapp.Ring, fakeapp.World]{fakeapp.KeepsQuorum},
		Begin: func(chance *rand.Rand) (*fakeapp.Ring, sim.Model[*fakeapp.Ring, fakeapp.World]) {
			return &fakeapp.Ring{Spec: fakeapp.Spec{Size: 1 + chance.IntN(3)}}, fakeapp.NewModel()
		},
		Edit: func(want *fakeapp.Ring, chance *rand.Rand) { want.Spec.Size = 1 + chance.IntN(5) },
	}
}

func reality(p wrong) plannertest.ModelCheck[*fakeapp.Ring, fakeapp.World] {
	return plannertest.ModelCheck[*fakeapp.Ring, fakeapp.World]{
		Scenario: life(p), Normalize: func(seen fakeapp.World, _ lifecycle.Step) any { seen.Revision = 0; return seen },
	}
}

// lie changes what Effect says of one step.
func lie(name string, how func(seen fakeapp.World, s lifecycle.Step, during, after *fakeapp.World)) wrong {
	return wrong{effect: func(want *fakeapp.Ring, seen fakeapp.World, s lifecycle.Step) (during, after fakeapp.World) {
		during, after = fakeapp.Planner{}.Effect(want, seen, s)
		if s.Name == name {
			how(seen, s, &during, &after)
		}
		return during, after
	}}
}

func TestEffectMismatchIsFound(t *testing.T) {
	cases := map[string]struct {
		reason  string
		planner wrong
		fault   plannertest.Fault
		says    string
	}{
		"After": {"a learner is no voter before it is promoted",
			lie("Promote", func(seen fakeapp.World, _ lifecycle.Step, _, after *fakeapp.World) { *after = seen }),
			plannertest.FaultEffectMismatch, `after "Promote m000001" the world never becomes`},
		"Wait": {"a wait makes no voter",
			lie("CaughtUp", func(_ fakeapp.World, _ lifecycle.Step, _, after *fakeapp.World) {
				for i := range after.Members {
					after.Members[i].Pod = fakeapp.Lost
				}
			}), plannertest.FaultEffectMismatch, `after "CaughtUp m000000" the world never becomes`},
		"NeverSettles": {"a step that the application refuses",
			wrong{next: always(lifecycle.Proceed(step("Dance", "m000000"))), effect: func(_ *fakeapp.Ring, seen fakeapp.World, _ lifecycle.Step) (during, after fakeapp.World) {
				return seen, seen
			}}, plannertest.FaultFails, "unknown step Dance"},
		"Idle": {"a rule that waits for what has come",
			wrong{next: func(_ *fakeapp.Ring, seen fakeapp.World, _ time.Time) lifecycle.Decision {
				if len(seen.Members) == 1 && seen.Members[0].Pod == fakeapp.Healthy {
					return lifecycle.WaitFor(step("CaughtUp", seen.Members[0].Name), time.Time{})
				}
				return lifecycle.Decision{}
			}}, plannertest.FaultNonTerminating, "does not settle within 200 ticks"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := reality(c.planner).Survey(20)
			if f == nil || f.Fault != c.fault || !strings.Contains(f.Says, c.says) {
				t.Fatalf("%s: found %v, want %s: %s", c.reason, f, c.fault, c.says)
			}
			if len(f.Story) > 8 {
				t.Errorf("a shorter life proves it: %v", f)
			}
		})
	}
}

// A member that starts again disturbs the ring, and Effect must say so.
func TestWorseEffectIsFound(t *testing.T) {
	p := lie("CreatePod", func(seen fakeapp.World, _ lifecycle.Step, during, after *fakeapp.World) { *during, *after = seen, seen })
	p.next = func(_ *fakeapp.Ring, seen fakeapp.World, _ time.Time) lifecycle.Decision {
		for _, m := range seen.Members {
			if len(seen.Members) == 1 && m.Pod == fakeapp.Healthy {
				return lifecycle.Proceed(step("CreatePod", m.Name)) // which restarts it
			}
		}
		return lifecycle.Decision{}
	}
	f := reality(p).Survey(20)
	if f == nil || f.Fault != plannertest.FaultEffectMismatch || !strings.Contains(f.Says, "breaks KeepsQuorum by 1, and Effect predicts at most 0") {
		t.Errorf("found %v", f)
	}
}

func TestCorrectPlannerHasNoFault(t *testing.T) {
	if f := reality(wrong{}).Survey(50); f != nil {
		t.Error(f)
	}
	if n, f := subject(wrong{}).Survey(fakeapp.SmallWorlds(3)); f != nil || n < 100 {
		t.Errorf("%d worlds: %v", n, f)
	}
}
