// Package machine is a machine that makes chocolate: a drum with one sugar setting, a belt with one bar at a time, a
// queue of jobs, and a sensor that tastes and is not exact. It has its own life outside of Kubernetes.
//
// Everything in this package is a value and a rule; time is an argument and chance comes from a seed. Package
// machine/server gives it an HTTP API.
package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// What the machine refuses.
var (
	// ErrNoJob: the machine does not know the job.
	ErrNoJob = errors.New("no such job")
	// ErrNotItsTurn: another job has the machine.
	ErrNotItsTurn = errors.New("another job has the machine")
	// ErrNoBar: this bar is not on the belt.
	ErrNoBar = errors.New("no such bar on the belt")
	// ErrNotReady: the bar is still soft.
	ErrNotReady = errors.New("the bar is not ready")
	// ErrBelt: there is a bar on the belt already.
	ErrBelt = errors.New("there is a bar on the belt")
)

const (
	// Making is how long it takes to make a bar.
	Making = 2 * time.Second
	// Forgetting is how long a job without requests keeps its place.
	Forgetting = 2 * time.Minute
	// Reference is the sugar, in mg/g, of the bar that is built into the sensor to check it by.
	Reference = 500
	// noise is the standard deviation of a sample; every twentieth is nonsense.
	noise, nonsense = 5, 20
)

// Order is what a job is to make.
type Order struct {
	// Number changes when the order does: its bars are then counted from 0.
	Number int64 `json:"number"`
	// Sugar is the setting, in mg/g.
	Sugar int `json:"sugar"`
}

// Places of a job, besides those in the queue.
const (
	// Holding is the place of the job that has the machine.
	Holding = 0
	// Resting is the place of a job that wants nothing now.
	Resting = -1
)

// Job is one order at the machine.
type Job struct {
	ID    string `json:"id"`
	Order Order  `json:"order"`
	// Place is 0 if it has the machine, how many are before it if not, and -1 if it rests.
	Place int `json:"place"`
	// Bar is on the belt.
	Bar *Bar `json:"bar,omitempty"`
	// Made and Disposed count bars of the order.
	Made     int `json:"made"`
	Disposed int `json:"disposed"`
	// Delivered is the last bar that was, of this order; Binned the last that was disposed of.
	Delivered *Bar `json:"delivered,omitempty"`
	Binned    *Bar `json:"binned,omitempty"`
}

// Bar is a bar of chocolate.
type Bar struct {
	ID    string    `json:"id"`
	Begun time.Time `json:"begun"`
	Ready bool      `json:"ready"`
	// Setting is the sugar that the machine was set to when it was made.
	Setting int `json:"setting"`
	// Measured is the last measurement, Measurements how many there were.
	Measured     *Measurement `json:"measured,omitempty"`
	Measurements int          `json:"measurements,omitempty"`
}

// Measurement is what the sensor said, in mg/g.
type Measurement struct {
	// Samples are of the bar, Reference of what is known to have 500.
	Samples   []int     `json:"samples"`
	Reference []int     `json:"reference"`
	At        time.Time `json:"at"`
}

// Faults are what is wrong with the machine.
type Faults struct {
	// Down: it does not answer.
	Down bool `json:"down,omitempty"`
	// Slow is how much longer a bar takes, in milliseconds.
	Slow int `json:"slowMilliseconds,omitempty"`
	// Drift is how far the sensor is off, WrongBatch how much more sugar than set gets into a bar, in mg/g.
	Drift      int `json:"drift,omitempty"`
	WrongBatch int `json:"wrongBatch,omitempty"`
}

// Fate is what became of a bar whose sugar only the machine's builder knows.
type Fate struct {
	Wanted, Truth int
	Disposed      bool
}

type job struct {
	Job
	truth int // the sugar that is in the bar on the belt
	ready time.Time
	asked time.Time
}

// Machine is one machine. It is not safe for concurrent use.
type Machine struct {
	Faults Faults
	chance *rand.Rand
	jobs   map[string]*job
	queue  []string // the first has the machine
	bars   int
	fates  []Fate
}

// New returns a machine that is at rest.
func New(chance *rand.Rand) *Machine { return &Machine{chance: chance, jobs: map[string]*job{}} }

// Fates are what became of all bars.
func (m *Machine) Fates() []Fate { return m.fates }

// Forget is what a power cut does: jobs and bars are gone.
func (m *Machine) Forget() { m.jobs, m.queue = map[string]*job{}, nil }

// Put gives the machine a job, or the job another order. A job that rested with this order goes on resting once it has
// delivered.
func (m *Machine) Put(now time.Time, id string, o Order) Job {
	j, known := m.jobs[id]
	if !known {
		j = &job{Job: Job{ID: id, Place: Resting}}
		m.jobs[id] = j
	}
	if j.Order.Number != o.Number {
		j.Made, j.Disposed, j.Delivered, j.Binned = 0, 0, nil, nil
	}
	j.Order, j.asked = o, now
	if j.Delivered == nil && !slices.Contains(m.queue, id) {
		m.queue = append(m.queue, id)
	}
	return m.view(now, j)
}

// Get returns the job. Asking keeps its place in the queue.
func (m *Machine) Get(now time.Time, id string) (Job, error) {
	m.tidy(now)
	j, known := m.jobs[id]
	if !known {
		return Job{}, ErrNoJob
	}
	j.asked = now
	return m.view(now, j), nil
}

// tidy drops jobs without requests, and waiting jobs move up.
func (m *Machine) tidy(now time.Time) {
	for id, j := range m.jobs {
		if now.Sub(j.asked) > Forgetting {
			m.Drop(id)
		}
	}
}

func (m *Machine) view(now time.Time, j *job) Job {
	v := j.Job
	v.Place = slices.Index(m.queue, j.ID)
	if j.Bar != nil {
		bar := *j.Bar
		bar.Ready = !now.Before(j.ready)
		v.Bar = &bar
	}
	return v
}

// at returns the job that has the machine.
func (m *Machine) at(id string) (*job, error) {
	j, known := m.jobs[id]
	switch {
	case !known:
		return nil, ErrNoJob
	case len(m.queue) == 0 || m.queue[0] != id:
		return nil, ErrNotItsTurn
	}
	return j, nil
}

// Make puts a new bar on the belt.
func (m *Machine) Make(now time.Time, id string) (Job, error) {
	j, err := m.at(id)
	if err != nil {
		return Job{}, err
	}
	if j.Bar != nil {
		return m.view(now, j), ErrBelt
	}
	m.bars++
	j.Made++
	j.Bar = &Bar{ID: fmt.Sprintf("bar-%d", m.bars), Begun: now, Setting: j.Order.Sugar}
	j.ready = now.Add(Making + time.Duration(m.Faults.Slow)*time.Millisecond)
	j.truth = j.Order.Sugar + m.Faults.WrongBatch
	return m.view(now, j), nil
}

// bar returns the job if this bar is on the belt for it.
func (m *Machine) bar(id, bar string) (*job, error) {
	j, err := m.at(id)
	if err != nil {
		return nil, err
	}
	if j.Bar == nil || j.Bar.ID != bar {
		return nil, ErrNoBar
	}
	return j, nil
}

// Sense measures the bar, and the reference, so many times.
func (m *Machine) Sense(now time.Time, id, bar string, samples int) (Job, error) {
	j, err := m.bar(id, bar)
	if err != nil {
		return Job{}, err
	}
	if now.Before(j.ready) {
		return m.view(now, j), ErrNotReady
	}
	j.Bar.Measured = &Measurement{Samples: m.taste(j.truth, samples), Reference: m.taste(Reference, samples), At: now}
	j.Bar.Measurements++
	return m.view(now, j), nil
}

func (m *Machine) taste(truth, samples int) []int {
	all := make([]int, samples)
	for i := range all {
		all[i] = truth + m.Faults.Drift + int(m.chance.NormFloat64()*noise)
		if m.chance.IntN(nonsense) == 0 {
			all[i] = m.chance.IntN(1000)
		}
	}
	return all
}

// Dispose throws the bar away.
func (m *Machine) Dispose(now time.Time, id, bar string) (Job, error) {
	j, err := m.bar(id, bar)
	if err != nil {
		return Job{}, err
	}
	m.fates = append(m.fates, Fate{Wanted: j.Order.Sugar, Truth: j.truth, Disposed: true})
	j.Disposed++
	j.Binned, j.Bar = j.Bar, nil
	return m.view(now, j), nil
}

// Deliver hands the bar out. The job rests then, and the next one has the machine.
func (m *Machine) Deliver(now time.Time, id, bar string) (Job, error) {
	j, err := m.bar(id, bar)
	if err != nil {
		return Job{}, err
	}
	m.fates = append(m.fates, Fate{Wanted: j.Order.Sugar, Truth: j.truth})
	j.Delivered, j.Bar = j.Bar, nil
	m.leave(id)
	return m.view(now, j), nil
}

// Rest gives the machine to the next job. A bar on the belt goes with it.
func (m *Machine) Rest(now time.Time, id string) (Job, error) {
	j, known := m.jobs[id]
	if !known {
		return Job{}, ErrNoJob
	}
	j.Bar = nil
	m.leave(id)
	return m.view(now, j), nil
}

// Drop forgets the job; one that is not known is forgotten already.
func (m *Machine) Drop(id string) {
	delete(m.jobs, id)
	m.leave(id)
}

func (m *Machine) leave(id string) {
	m.queue = slices.DeleteFunc(m.queue, func(waiting string) bool { return waiting == id })
}
