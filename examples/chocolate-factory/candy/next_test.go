package candy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/plannertest"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/candy"
	"awesome.corp.com/chocolate-factory/machine"
)

func wanted() *v1.Candy {
	c := &v1.Candy{Spec: v1.CandySpec{Flavor: "sweeeeeeet", Machine: "m", Attempts: 3}}
	c.Generation = 1
	return c
}

// on the belt is a bar that reads so much sugar.
func bar(reads, reference int) *machine.Bar {
	return &machine.Bar{ID: "bar-1", Ready: true, Setting: 640, Begun: plannertest.TestTime, Measurements: 1, Measured: &machine.Measurement{
		Samples: slices.Repeat([]int{reads}, 25), Reference: slices.Repeat([]int{reference}, 25), At: plannertest.TestTime,
	}}
}

func holding(b *machine.Bar) candy.World {
	return candy.World{Answers: true, Job: &machine.Job{ID: "j", Order: machine.Order{Number: 1, Sugar: 640}, Bar: b, Made: 1}}
}

func TestNext(t *testing.T) {
	deleted := wanted()
	deleted.DeletionTimestamp = &metav1.Time{Time: plannertest.TestTime.Add(-time.Second)}
	long := deleted.DeepCopy()
	long.DeletionTimestamp = &metav1.Time{Time: plannertest.TestTime.Add(-time.Hour)}
	soft := &machine.Bar{ID: "bar-1", Setting: 640, Begun: plannertest.TestTime}
	late := &machine.Bar{ID: "bar-1", Setting: 640, Begun: plannertest.TestTime.Add(-time.Hour)}
	queued := holding(nil)
	queued.Job.Place = 2
	failed := holding(nil)
	failed.Job.Disposed = 3
	cases := map[string]struct {
		reason string
		want   *v1.Candy
		seen   candy.World
		said   string
	}{
		"New":         {"a machine that knows nothing gets the order", wanted(), candy.World{Answers: true}, "Order NotOrdered"},
		"Silent":      {"nothing is known of a machine that does not answer", wanted(), candy.World{}, "MachineAnswers MachineAway"},
		"Queued":      {"others have the machine", wanted(), queued, "TurnComes MachineBusy"},
		"Free":        {"a bar is made", wanted(), holding(nil), "MakeBar NoBar"},
		"Soft":        {"a bar takes a while", wanted(), holding(soft), "BarReady bar-1 BarSoft"},
		"Overdue":     {"and not for ever", wanted(), holding(late), " BarOverdue"},
		"Good":        {"what is as it should be is delivered", wanted(), holding(bar(645, 500)), "Deliver bar-1 WithinTolerance"},
		"TooSweet":    {"what is not is disposed of", wanted(), holding(bar(700, 500)), "Dispose bar-1 OutOfTolerance"},
		"NotSweet":    {"in either direction", wanted(), holding(bar(600, 500)), "Dispose bar-1 OutOfTolerance"},
		"Off":         {"a sensor that misreads its reference is not believed", wanted(), holding(bar(700, 560)), "SensorTrusted bar-1 SensorOff"},
		"Exhausted":   {"a candy that gives up releases the machine", wanted(), failed, "Rest TooManyBadBars"},
		"Deleted":     {"the machine is released", deleted, holding(soft), "Release Deleted"},
		"Gone":        {"then the candy goes", deleted, candy.World{Answers: true}, " Released"},
		"DeadMachine": {"a dead machine is waited for", deleted, candy.World{}, "MachineAnswers MachineAway"},
		"VeryDead":    {"and not for ever", long, candy.World{}, " MachineAbandoned"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := candy.Planner{}.Next(c.want, c.seen, plannertest.TestTime)
			if got := d.Step.String() + " " + d.Reason; got != c.said {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.said)
			}
		})
	}
}

func subject() plannertest.Subject[*v1.Candy, candy.World] {
	return plannertest.Subject[*v1.Candy, candy.World]{
		Planner: lifecycle.Strict[*v1.Candy, candy.World](candy.Planner{}, candy.Steps()), Gates: candy.Gates(),
		May: func(_ *v1.Candy, _ candy.World, d lifecycle.Decision) bool {
			return slices.Contains([]string{"TooManyBadBars", "BarOverdue", "OutOfQueue"}, d.Reason)
		},
	}
}

// Every world: no job, or one at any place, with any bar in any state, of this order or another, with any past.
func TestEverySmallWorld(t *testing.T) {
	other := bar(300, 500)
	other.Setting = 300
	bars := []*machine.Bar{
		nil, {ID: "b", Setting: 640, Begun: plannertest.TestTime}, {ID: "b", Setting: 640, Ready: true, Begun: plannertest.TestTime},
		{ID: "b", Setting: 640, Begun: plannertest.TestTime.Add(-time.Hour)}, other,
		bar(640, 500), bar(659, 500), bar(700, 500), bar(700, 560), bar(580, 500),
	}
	plannertest.Worlds(t, subject(), func(yield func(*v1.Candy, candy.World) bool) {
		for _, want := range wishes() {
			if !yield(want, candy.World{}) || !yield(want, candy.World{Answers: true}) {
				return
			}
			for _, b := range bars {
				for place := machine.Resting; place <= 2; place++ {
					for disposed := range 4 {
						for number := range int64(2) {
							job := machine.Job{Order: machine.Order{Number: number, Sugar: 640}, Place: place, Bar: b, Made: disposed, Disposed: disposed}
							if !yield(want, candy.World{Answers: true, Job: &job}) {
								return
							}
						}
					}
				}
			}
		}
	})
}

func wishes() []*v1.Candy {
	deleted, delivered := wanted(), wanted()
	deleted.DeletionTimestamp = &metav1.Time{Time: plannertest.TestTime.Add(-time.Second)}
	delivered.Status.Delivered = &v1.Delivered{Bar: "bar-0", Flavor: "sweeeeeeet"}
	return []*v1.Candy{wanted(), deleted, delivered}
}

func TestPreview(t *testing.T) {
	plan := "Order\nMakeBar\n(BarReady bar)\nSense bar\nDeliver bar\nSettled Delivered"
	if diff := cmp.Diff(plan, subject().Preview(wanted(), candy.World{Answers: true})); diff != "" {
		t.Error(diff)
	}
}

// Every tenth sample is nonsense, and one is far off: the median does not care.
func TestMeasurementIsRobust(t *testing.T) {
	b := bar(640, 500)
	b.Measured.Samples[3], b.Measured.Samples[7], b.Measured.Samples[8] = 999, 0, 12
	if v := candy.Judge(b, 640); v != candy.Fits {
		t.Errorf("judged %s by %v", v, b.Measured.Samples)
	}
	for i := range b.Measured.Samples {
		b.Measured.Samples[i] = 400 + 40*i%480
	}
	if v := candy.Judge(b, 640); v != candy.Untrusted {
		t.Errorf("samples that contradict each other are judged %s", v)
	}
	b = bar(660, 500)
	if v := candy.Judge(b, 640); v != candy.Unsure {
		t.Errorf("a bar at the limit is judged %s", v)
	}
	if b.Measurements = 3; candy.Judge(b, 640) != candy.Fits {
		t.Error("in the end the doubt is the bar's benefit")
	}
}

// A rule book that disposes of what it has not measured is held.
func TestGateHoldsAGuess(t *testing.T) {
	seen := holding(bar(640, 500))
	step := lifecycle.Step{Name: candy.Dispose, Target: "bar-1"}
	during, _ := candy.Planner{}.Effect(wanted(), seen, step)
	if r := lifecycle.Judge(candy.Gates(), wanted(), seen, during, step); len(r) != 1 {
		t.Errorf("a good bar may be thrown away: %v", r)
	}
	during, _ = candy.Planner{}.Effect(wanted(), holding(bar(700, 500)), step)
	if r := lifecycle.Judge(candy.Gates(), wanted(), seen, during, step); len(r) != 0 {
		t.Errorf("a bad bar may not be thrown away: %v", r)
	}
}
