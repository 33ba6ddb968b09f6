package envtest_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/governor-dev/governor/apps/memcached"
)

type autoscaling = autoscalingv1.Scale

// turns is how many turns all operators of this process have taken for memcached.
func turns() float64 {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0
	}
	var n float64
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == memcached.Name {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// quiet waits until the operator has written all that it had to say: events are
// sent in the background.
func quiet(t *testing.T, namespace string, op *operator) {
	t.Helper()
	last, since := op.writes.Load(), time.Now()
	eventually(t, "the operator in "+namespace+" falls silent", func() error {
		if n := op.writes.Load(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("%d writes so far", last)
		}
		return nil
	})
}

// verbosity shows the operators' logs if GOVERNOR_TEST_LOG is set.
func verbosity() logr.Logger {
	if os.Getenv("GOVERNOR_TEST_LOG") == "" {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) { fmt.Println(prefix, args) }, funcr.Options{})
}
