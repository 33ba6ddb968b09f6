package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

// world is an instance in memory that heals some time after a manipulation.
type world struct {
	name  string
	state experiment.State
	// heals is how long it takes; 0 means at once, and less than that never.
	heals time.Duration
	// worse is how many pods are away meanwhile.
	worse int
	// refuse is what Do returns, by the name of the manipulation; deaf what Announce does.
	refuse map[string]error
	deaf   error
	// others is what Others returns until the time.
	others time.Time
	// keeps are the identities after a manipulation; nil means the same as before.
	keeps map[string]string
	// rivals is how many announcements another experiment makes at the same moment.
	rivals int
	// stuck is what undoing returns.
	stuck error

	hurt      time.Time
	isolated  bool
	did       []string
	announced []string
	// together counts how many worlds are hurt at once, and most how many were.
	together, most *int
}

func serving(name string) *world {
	none, most := 0, 0
	return &world{
		name: name, heals: 5 * time.Second, together: &none, most: &most,
		state: experiment.State{
			OptedIn: true, Ready: true, Reason: "AsDeclared", Budget: true, MinReady: 2,
			Pods: []experiment.Pod{{Name: "0", Ready: true}, {Name: "1", Ready: true}, {Name: "2", Ready: true}},
		},
	}
}

func (w *world) String() string { return w.name }

func (w *world) healed() bool {
	return w.hurt.IsZero() || w.heals >= 0 && time.Since(w.hurt) >= w.heals
}

func (w *world) Look(ctx context.Context) (experiment.State, error) {
	s := w.state
	if !w.healed() || w.isolated {
		s.Ready, s.Reason = false, "MemberNotServing"
		s.Pods = slices.Clone(s.Pods)
		for i := range w.worse {
			s.Pods[i].Ready = false
		}
	} else if !w.hurt.IsZero() {
		w.hurt = time.Time{}
		w.count(-1)
	}
	return s, ctx.Err()
}

// counting guards what worlds count together.
var counting sync.Mutex

func (w *world) count(n int) {
	counting.Lock()
	defer counting.Unlock()
	*w.together += n
	*w.most = max(*w.most, *w.together)
}

func (w *world) Others(context.Context) (string, error) {
	if n := len(w.announced); w.rivals > 0 && n > 0 && strings.HasSuffix(w.announced[n-1], " ") {
		w.rivals--
		return "another experiment began at the same moment", nil
	}
	if time.Now().Before(w.others) {
		return "another experiment is under way", nil
	}
	return "", nil
}

func (w *world) Names(_ context.Context, m chaos.Manipulation, target int) ([]string, error) {
	if err := w.refuse[m.Name]; errors.Is(err, experiment.ErrImpossible) && !m.Lasts {
		return nil, err
	}
	return []string{fmt.Sprint(m.Object.Kind, "-", target%3)}, nil
}

func (w *world) Announce(_ context.Context, a experiment.Act) error {
	w.announced = append(w.announced, a.Manipulation+" "+string(a.Outcome))
	return w.deaf
}

func (w *world) Do(_ context.Context, m chaos.Manipulation, _ int) (done experiment.Done, err error) {
	if m.Lasts {
		w.isolated = true
		done.Undo = func(ctx context.Context) error { w.isolated = false; return errors.Join(w.stuck, ctx.Err()) }
	}
	if err := w.refuse[m.Name]; err != nil {
		return done, err
	}
	w.did, w.hurt = append(w.did, m.Name), time.Now()
	if w.keeps != nil {
		w.state.Kept = w.keeps
	}
	w.count(+1)
	done.Healed = func(context.Context) (bool, error) { return w.healed(), nil }
	return done, nil
}

func (w *world) Steps(context.Context, time.Time) ([]string, error) { return nil, nil }

var catalogue = experiment.Safe()

func span(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

func limits() experiment.Limits {
	return experiment.Limits{
		Budget: 6, AtOnce: 1, For: span(time.Hour), Pause: span(10 * time.Second), HealWithin: span(time.Minute), Lasting: span(20 * time.Second),
	}
}

// only are the manipulations with these names.
func only(names ...string) chaos.Catalogue {
	return catalogue.Where(func(m chaos.Manipulation) bool { return slices.Contains(names, m.Name) })
}

// try runs an experiment in a bubble where time passes at once.
func try(t *testing.T, change func(*experiment.Experiment), worlds ...*world) (r experiment.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &experiment.Experiment{Catalogue: catalogue, Limits: limits(), Seed: 7, Now: time.Now}
		for _, w := range worlds {
			e.Instances = append(e.Instances, w)
		}
		if change != nil {
			change(e)
		}
		r = e.Run(t.Context())
	})
	return r
}

func ends(t *testing.T, r experiment.Report, acts int, outcome experiment.Outcome, message string) {
	t.Helper()
	if len(r.Acts) != acts || r.Outcome != outcome || !strings.Contains(r.Message, message) {
		t.Errorf("got %d acts, %s %q; want %d, %s %q", len(r.Acts), r.Outcome, r.Message, acts, outcome, message)
	}
}

func TestBudgetIsSpent(t *testing.T) {
	w := serving("etcd/e")
	r := try(t, nil, w)
	ends(t, r, 6, experiment.Completed, "")
	if len(w.did) != 6 || len(slices.Compact(slices.Sorted(slices.Values(w.did)))) != 6 {
		t.Errorf("each manipulation is done once before one is done again: %v", w.did)
	}
	for i, a := range r.Acts {
		if a.Number != i+1 || a.Outcome != experiment.Healed || a.HealedAfter.Duration <= 0 || a.HealedAfter.Duration > 6*time.Second || a.NotReadyFor.Duration <= 0 {
			t.Errorf("act %d is %+v", i, a)
		}
	}
	if len(w.announced) != 12 || w.announced[0] != w.did[0]+" " || w.announced[1] != w.did[0]+" Healed" {
		t.Errorf("each act is announced before and after: %v", w.announced)
	}
}

func TestRivalsWithdraw(t *testing.T) {
	w := serving("etcd/e")
	w.rivals = 2
	r := try(t, nil, w)
	ends(t, r, 6, experiment.Completed, "")
	withdrawn := 0
	for _, said := range w.announced {
		if strings.HasSuffix(said, " Withdrawn") {
			withdrawn++
		}
	}
	if withdrawn != 2 || len(w.did) != 6 {
		t.Errorf("%d acts were withdrawn, and %d done: %v", withdrawn, len(w.did), w.announced)
	}
}

func TestSeedDecides(t *testing.T) {
	names := func(seed uint64) []string {
		a, b := serving("etcd/a"), serving("etcd/b")
		var did []string
		for _, act := range try(t, func(e *experiment.Experiment) { e.Seed = seed }, a, b).Acts {
			did = append(did, act.Instance+" "+act.Manipulation+" "+act.Objects[0])
		}
		return did
	}
	if diff := cmp.Diff(names(1), names(1)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(names(1), names(2)) {
		t.Error("another seed does the same")
	}
}

func TestAtOnceLimitsInstances(t *testing.T) {
	for atOnce, want := range map[int]int{1: 1, 2: 2, 5: 3} {
		a, b, c := serving("etcd/a"), serving("etcd/b"), serving("etcd/c")
		b.together, b.most, c.together, c.most = a.together, a.most, a.together, a.most
		r := try(t, func(e *experiment.Experiment) { e.Limits.AtOnce, e.Limits.Budget = atOnce, 12 }, a, b, c)
		ends(t, r, 12, experiment.Completed, "")
		if *a.most != want {
			t.Errorf("--at-once %d: %d instances at once, want %d", atOnce, *a.most, want)
		}
	}
}

func TestPauseAndForLimitTime(t *testing.T) {
	r := try(t, func(e *experiment.Experiment) {
		e.Limits.Pause, e.Limits.For, e.Limits.Budget = span(30*time.Second), span(2*time.Minute), 100
		e.Catalogue = only("configmap-edit-empty")
	}, serving("etcd/e"))
	ends(t, r, 4, experiment.TimeUp, "--for 2m0s is over.")
	for i := range r.Acts[1:] {
		if gap := r.Acts[i+1].At.Sub(r.Acts[i].At); gap < 30*time.Second {
			t.Errorf("act %d begins %s after the one before", i+2, gap)
		}
	}
}

func TestNothingBeginsWhileAnInstanceIsUnfit(t *testing.T) {
	for want, spoil := range map[string]func(*experiment.State){
		"it is paused":            func(s *experiment.State) { s.Paused = true },
		"a change is under way":   func(s *experiment.State) { s.Changing = true },
		"it is not Ready: Broken": func(s *experiment.State) { s.Ready, s.Reason = false, "Broken" },
		"frozen (audit)":          func(s *experiment.State) { s.Held = []string{"frozen (audit)"} },
		"2 of its 3 pods":         func(s *experiment.State) { s.Pods[0].Ready = false },
	} {
		w := serving("etcd/e")
		spoil(&w.state)
		ends(t, try(t, nil, w), 0, experiment.TimeUp, "etcd/e was waited for: "+want)
		if len(w.did) > 0 || len(w.announced) > 0 {
			t.Errorf("%s: it did %v", want, w.did)
		}
	}
}

func TestWithdrawnPermissionEndsIt(t *testing.T) {
	for want, spoil := range map[string]func(*experiment.State){
		"etcd/e: its namespace does not permit experiments any more": func(s *experiment.State) { s.OptedIn = false },
		"etcd/e: it is being deleted":                                func(s *experiment.State) { s.Deleting = true },
	} {
		w := serving("etcd/e")
		spoil(&w.state)
		ends(t, try(t, nil, w), 0, experiment.Failed, want)
	}
}

func TestFirstViolationEndsIt(t *testing.T) {
	never, worse := serving("etcd/e"), serving("etcd/e")
	never.heals, worse.worse = -1, 2
	r := try(t, nil, never)
	ends(t, r, 1, experiment.Violated, "it has not healed within 1m0s: it is not Ready: MemberNotServing")
	if r.Good() || r.Acts[0].NotReadyFor.Duration < time.Minute {
		t.Errorf("the act is %+v", r.Acts[0])
	}
	r = try(t, nil, worse)
	ends(t, r, 1, experiment.Violated, "1 of its 3 pods are ready, and its PodDisruptionBudget requires 2")
	if r.Acts[0].LeastReady != 1 {
		t.Errorf("the act is %+v", r.Acts[0])
	}
}

func TestViolationOfOneInstanceStopsOthers(t *testing.T) {
	good, bad := serving("etcd/good"), serving("etcd/bad")
	bad.heals = -1
	r := try(t, func(e *experiment.Experiment) { e.Limits.AtOnce, e.Limits.Budget = 2, 100 }, good, bad)
	if r.Outcome != experiment.Violated || !strings.Contains(r.Message, "etcd/bad") || good.isolated || len(good.did) > 6 {
		t.Errorf("%s %q, good %v", r.Outcome, r.Message, good.did)
	}
}

func TestWhatLastsIsUndone(t *testing.T) {
	w := serving("etcd/e")
	r := try(t, func(e *experiment.Experiment) { e.Catalogue, e.Limits.Budget = only("pod-isolate"), 1 }, w)
	ends(t, r, 1, experiment.Completed, "")
	if a := r.Acts[0]; w.isolated || a.NotReadyFor.Duration < 20*time.Second || a.HealedAfter.Duration > 5*time.Second {
		t.Errorf("isolated %v, %+v", w.isolated, a)
	}
}

func TestInterruptionUndoes(t *testing.T) {
	w := serving("etcd/e")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		e := &experiment.Experiment{Instances: []experiment.Instance{w}, Catalogue: only("pod-isolate"), Limits: limits(), Now: time.Now}
		r := e.Run(ctx)
		ends(t, r, 1, experiment.Interrupted, "was undone")
		if w.isolated || r.Acts[0].Outcome != experiment.Interrupted || w.announced[1] != "pod-isolate Interrupted" {
			t.Errorf("isolated %v, announced %v, %+v", w.isolated, w.announced, r.Acts[0])
		}
	})
}

// A manipulation that was done in part is undone before another one is chosen.
func TestWhatWasDoneInPartIsUndone(t *testing.T) {
	isolate := func(e *experiment.Experiment) { e.Catalogue = only("pod-isolate") }
	w := serving("etcd/e")
	w.refuse = map[string]error{"pod-isolate": fmt.Errorf("%w: forbidden", experiment.ErrImpossible)}
	ends(t, try(t, isolate, w), 0, experiment.Exhausted, "")
	if w.isolated {
		t.Error("it is isolated")
	}
	w.stuck = errors.New("cannot delete")
	ends(t, try(t, isolate, w), 0, experiment.Failed, "cannot delete")
}

func TestWhatCannotBeUndoneIsReported(t *testing.T) {
	w := serving("etcd/e")
	w.stuck = errors.New("cannot delete")
	r := try(t, func(e *experiment.Experiment) { e.Catalogue = only("pod-isolate") }, w)
	ends(t, r, 1, experiment.Failed, "it could not be undone: cannot delete")
}

func TestWhatCannotBeAnnouncedIsNotDone(t *testing.T) {
	w := serving("etcd/e")
	w.deaf = errors.New("forbidden")
	ends(t, try(t, nil, w), 0, experiment.Failed, "it cannot be announced, so it is not done: forbidden")
	if len(w.did) > 0 {
		t.Errorf("it did %v", w.did)
	}
}

// Another experiment acts on the instance: two at once would take more pods than one may.
func TestAnActOfAnotherExperimentIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serving("etcd/e")
		w.others = time.Now().Add(time.Minute)
		e := &experiment.Experiment{Catalogue: catalogue, Limits: limits(), Seed: 7, Now: time.Now, Instances: []experiment.Instance{w}}
		r := e.Run(t.Context())
		if len(r.Acts) == 0 || r.Acts[0].At.Before(w.others) {
			t.Errorf("the acts are %+v", r.Acts)
		}
	})
}

func TestImpossibleManipulationsAreLeftOut(t *testing.T) {
	w := serving("etcd/e")
	w.refuse = map[string]error{}
	for _, m := range catalogue {
		if m.Name != "pod-evict" {
			w.refuse[m.Name] = fmt.Errorf("%w: there is no such object", experiment.ErrImpossible)
		}
	}
	r := try(t, func(e *experiment.Experiment) { e.Limits.Budget = 2 }, w)
	ends(t, r, 2, experiment.Completed, "")
	if len(r.LeftOut) == 0 || r.LeftOut[0].Instance != "etcd/e" || !strings.Contains(r.LeftOut[0].Reason, "no such object") {
		t.Errorf("left out: %v", r.LeftOut)
	}
	w.refuse["pod-evict"] = w.refuse["pod-isolate"]
	ends(t, try(t, nil, w), 0, experiment.Exhausted, "No manipulation is left that may be done to etcd/e")
	w.refuse["pod-evict"] = errors.New("the server is away")
	ends(t, try(t, nil, w), 0, experiment.Failed, "pod-evict of etcd/e: the server is away")
}

func TestPlanSaysWhatRunDoes(t *testing.T) {
	worlds := []*world{serving("etcd/a"), serving("etcd/b")}
	var planned []experiment.Act
	r := try(t, func(e *experiment.Experiment) {
		var err error
		if planned, _, err = e.Plan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}, worlds...)
	for i, a := range r.Acts {
		p := planned[i]
		if p.Number != a.Number || p.Instance != a.Instance || p.Manipulation != a.Manipulation || !slices.Equal(p.Objects, a.Objects) {
			t.Errorf("planned %+v, done %+v", p, a)
		}
	}
	if len(planned) != 6 || len(r.Acts) != 6 {
		t.Errorf("%d are planned, %d done", len(planned), len(r.Acts))
	}
}
