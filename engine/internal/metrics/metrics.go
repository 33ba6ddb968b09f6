// Package metrics has the engine's metrics, and keeps the gauges of the objects.
package metrics

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
	// Running is 1 while an application runs.
	Running = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "governor_app_running", Help: "1 if the application's CRD exists and this operator leads.",
	}, []string{"app"})
	objects = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "governor_objects", Help: "Objects by the outcome of their last reconcile.",
	}, []string{"app", "state"})
	// Steps counts the steps that were taken.
	Steps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "governor_steps_total", Help: "Steps taken.",
	}, []string{"app", "step", "class", "result"})
	// Holds counts the reconciles in which a gate held a step.
	Holds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "governor_gate_holds_total", Help: "Reconciles in which a gate held a step.",
	}, []string{"app", "gate"})
	// Writes counts the writes of resources.
	Writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "governor_resource_writes_total", Help: "Resources created, configured or pruned.",
	}, []string{"app", "kind", "verb"})
	// Panics counts the panics of planners and drivers.
	Panics = prometheus.NewCounterVec(prometheus.CounterOpts{
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
	metrics.Registry.MustRegister(Running, objects, Steps, Holds, Writes, Panics, readyAfter, drifted)
}

// Progress remembers each object's state, for the gauges and for how long it took
// to be ready.
type Progress struct {
	// App is the name of the application, a label of all series.
	App string

	now func() time.Time

	mu     sync.Mutex
	states map[types.NamespacedName]string
	since  map[types.NamespacedName]time.Time
	drifts map[types.NamespacedName]bool
}

// NewProgress returns the progress of the application's objects, of which none is known yet.
func NewProgress(app string, now func() time.Time) *Progress {
	return &Progress{
		App: app, now: now,
		states: map[types.NamespacedName]string{}, since: map[types.NamespacedName]time.Time{},
		drifts: map[types.NamespacedName]bool{},
	}
}

// Note moves the object to the state. The time to ready begins when an object is new or leaves
// Settled.
func (p *Progress) Note(key types.NamespacedName, state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.states[key]
	p.move(key, was, state)
	began, moving := p.since[key]
	switch settled := state == string(lifecycle.OutcomeSettled); {
	case settled && moving:
		readyAfter.WithLabelValues(p.App).Observe(p.now().Sub(began).Seconds())
		delete(p.since, key)
	case !settled && !moving:
		p.since[key] = p.now()
	}
}

func (p *Progress) move(key types.NamespacedName, from, to string) {
	if from == to {
		return
	}
	if from != "" {
		objects.WithLabelValues(p.App, from).Dec()
	}
	if to == "" {
		delete(p.states, key)
		return
	}
	objects.WithLabelValues(p.App, to).Inc()
	p.states[key] = to
}

// Drift records whether changes by others stay in place.
func (p *Progress) Drift(key types.NamespacedName, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setDrift(key, is)
}

func (p *Progress) setDrift(key types.NamespacedName, is bool) {
	switch {
	case is == p.drifts[key]:
		return
	case is:
		p.drifts[key] = true
	default:
		delete(p.drifts, key)
	}
	drifted.WithLabelValues(p.App).Set(float64(len(p.drifts)))
}

// Forget drops an object that is gone.
func (p *Progress) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(key, p.states[key], "")
	p.setDrift(key, false)
	delete(p.since, key)
}

// ForgetApp drops the gauges of an application that no longer runs.
func ForgetApp(app string) {
	Running.WithLabelValues(app).Set(0)
	objects.DeletePartialMatch(prometheus.Labels{"app": app})
	drifted.DeleteLabelValues(app)
}

// Unregister drops all series of an application that is no longer registered.
func Unregister(app string) {
	for _, of := range []interface{ DeletePartialMatch(prometheus.Labels) int }{Running, objects, Steps, Holds, Writes, Panics, readyAfter, drifted} {
		of.DeletePartialMatch(prometheus.Labels{"app": app})
	}
}
