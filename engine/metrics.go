package engine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/governor-dev/governor/lifecycle"
)

// The engine's metrics, besides those of controller-runtime.
var (
	running = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "governor_app_running", Help: "1 if the application's CRD exists and this operator leads.",
	}, []string{"app"})
	objects = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "governor_objects", Help: "Objects by the outcome of their last reconcile.",
	}, []string{"app", "state"})
	steps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "governor_steps_total", Help: "Steps taken.",
	}, []string{"app", "step", "class", "result"})
	holds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "governor_gate_holds_total", Help: "Reconciles in which a gate held a step.",
	}, []string{"app", "gate"})
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "governor_resource_writes_total", Help: "Resources created, configured or pruned.",
	}, []string{"app", "kind", "verb"})
	panics = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "governor_panics_total", Help: "Panics of planners and drivers; each stopped the reconcile of one object.",
	}, []string{"app"})
	readyAfter = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "governor_time_to_ready_seconds", Help: "Time from the first reconcile of a generation, or after a loss, until the object is as declared.",
		Buckets: prometheus.ExponentialBuckets(0.25, 2, 13),
	}, []string{"app"})
	drifted = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "governor_drifted_objects", Help: "Objects with changes by others that a policy leaves in place.",
	}, []string{"app"})
)

func init() {
	metrics.Registry.MustRegister(running, objects, steps, holds, writes, panics, readyAfter, drifted)
}

// measure counts what was done, and moves the object to its new state.
func (p *progress) measure(r *result) {
	for _, c := range r.changes {
		writes.WithLabelValues(p.app, c.Kind, string(c.Verb)).Inc()
	}
	for _, refusal := range r.refusals {
		holds.WithLabelValues(p.app, refusal.Gate).Inc()
	}
	if r.taken != nil {
		result := "ok"
		if r.taken.err != nil {
			result = "error"
		}
		steps.WithLabelValues(p.app, r.taken.step.Name, string(r.taken.step.Class), result).Inc()
	}
	state := string(r.decision.Outcome)
	if r.paused {
		state = "Paused"
	}
	p.note(r.key, state)
	p.drift(r.key, len(r.drifts) > 0)
}

// progress remembers each object's state, for the gauges and for how long it took
// to be ready.
type progress struct {
	app string
	now func() time.Time

	mu     sync.Mutex
	states map[types.NamespacedName]string
	since  map[types.NamespacedName]time.Time
	drifts map[types.NamespacedName]bool
}

func newProgress(app string, now func() time.Time) *progress {
	return &progress{
		app: app, now: now,
		states: map[types.NamespacedName]string{}, since: map[types.NamespacedName]time.Time{},
		drifts: map[types.NamespacedName]bool{},
	}
}

// note moves the object to the state. The time to ready begins when an object is new or leaves
// Settled.
func (p *progress) note(key types.NamespacedName, state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.states[key]
	p.move(key, was, state)
	began, moving := p.since[key]
	switch settled := state == string(lifecycle.OutcomeSettled); {
	case settled && moving:
		readyAfter.WithLabelValues(p.app).Observe(p.now().Sub(began).Seconds())
		delete(p.since, key)
	case !settled && !moving:
		p.since[key] = p.now()
	}
}

func (p *progress) move(key types.NamespacedName, from, to string) {
	if from == to {
		return
	}
	if from != "" {
		objects.WithLabelValues(p.app, from).Dec()
	}
	if to == "" {
		delete(p.states, key)
		return
	}
	objects.WithLabelValues(p.app, to).Inc()
	p.states[key] = to
}

// drift records whether changes by others stay in place.
func (p *progress) drift(key types.NamespacedName, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drifted(key, is)
}

func (p *progress) drifted(key types.NamespacedName, is bool) {
	switch {
	case is == p.drifts[key]:
		return
	case is:
		p.drifts[key] = true
	default:
		delete(p.drifts, key)
	}
	drifted.WithLabelValues(p.app).Set(float64(len(p.drifts)))
}

func (p *progress) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(key, p.states[key], "")
	p.drifted(key, false)
	delete(p.since, key)
}

// forgetApp drops the gauges of an application that no longer runs.
func forgetApp(app string) {
	running.WithLabelValues(app).Set(0)
	objects.DeletePartialMatch(prometheus.Labels{"app": app})
	drifted.DeleteLabelValues(app)
}
