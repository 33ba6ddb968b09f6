package webhookcert

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestReadinessWaitsForTheCertificateForSomeTime(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	r := &Rotator{serving: NewServing(), options: Options{Clock: clock}, began: noon}
	if r.Ready(nil) == nil {
		t.Error("a replica without a certificate is ready")
	}
	clock.Step(readinessGrace + time.Second)
	if err := r.Ready(nil); err != nil {
		t.Errorf("the operator is not ready without its webhooks: %v", err)
	}
	clock.SetTime(noon)
	if err := r.serving.Load(issued(t)); err != nil || r.Ready(nil) != nil {
		t.Errorf("a replica with a certificate is not ready: %v", err)
	}
}

func TestDedupLoggerLogsEachFailureOnce(t *testing.T) {
	var lines []string
	l := newDedupLogger(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	away, denied := errors.New("away"), errors.New("denied")
	for _, err := range []error{nil, away, away, denied, denied, nil, nil, away} {
		l.report(topic{"secret", noAdvice}, err)
		l.report(topic{"other", noConversion}, denied)
	}
	var got []string
	for _, line := range lines {
		got = append(got, line[strings.LastIndex(line, "=")+1:])
	}
	want := []string{`"denied"`, `"away"`, `"denied"`, `"secret"`, `"away"`} // the fourth: recovered
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

// A second install is not ready, unless it watches only some namespaces.
func TestSecondInstallIsNotReady(t *testing.T) {
	r := &Rotator{serving: NewServing(), options: Options{Names: names, Clock: clocktesting.NewFakeClock(noon.Add(time.Hour))}, began: noon}
	seen := func(namespace string) []observedTarget {
		c := &validatingConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: calling(namespace)}}}
		return []observedTarget{{trustTarget: newTrustTargets(Options{})[0], synced: true, found: c}}
	}
	for _, c := range []struct {
		namespace string
		scoped    bool
		ready     bool
	}{{"governor-two", false, false}, {"governor-system", false, true}, {"governor-two", true, true}} {
		r.options.Scoped = c.scoped
		r.compareInstalls(seen(c.namespace))
		if err := r.Ready(nil); (err == nil) != c.ready {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
