package envtest_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/governor-dev/governor/apps/memcached"
)

type autoscaling = autoscalingv1.Scale

// turns returns the number of memcached reconciles by all operators of this process.
func turns() float64 { return turnsOf(memcached.Name) }

func turnsOf(app string) float64 {
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
				if l.GetName() == "controller" && l.GetValue() == app {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// quiet waits until the operator sends no more writes: it sends events in the background.
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

// fetchTable sends the request of kubectl get.
func fetchTable(t *testing.T, path string, into *unstructured.Unstructured) {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	must(t, err)
	server, _, err := rest.DefaultServerUrlFor(config)
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.JoinPath(path).String(), http.NoBody)
	must(t, err)
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := c.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, json.Unmarshal(raw, &into.Object))
}
