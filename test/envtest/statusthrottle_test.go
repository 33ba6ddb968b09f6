package envtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// TestApplyComesBeforeStatus creates many caches with one worker. All get their objects
// before any status says that they wait. One event then also reports what was applied.
func TestApplyComesBeforeStatus(t *testing.T) {
	t.Parallel()
	const many = 12
	ns := newNamespace(t)
	for i := range many {
		newMemcached(t, ns, fmt.Sprintf("m%d", i), 1)
	}
	startOperatorIn(t, setting{workers: 1, tellWithin: 20 * time.Second}, ns)
	for i := range many {
		deploymentOf(t, ns, fmt.Sprintf("m%d", i))
	}
	silent := silentOf(t, ns)
	if len(silent) < many/3 {
		t.Errorf("only %d of %d were made before their status was written", len(silent), many)
	}
	for i := range many {
		reaches(t, ns, fmt.Sprintf("m%d", i), lifecycle.ConditionReady, metav1.ConditionFalse, "RollingOut")
	}
	for _, name := range silent {
		eventually(t, "one event reports all of "+name, func() error { return toldOnce(t, ns, name) })
	}
}

// silentOf returns the caches without a status.
func silentOf(t *testing.T, ns string) []string {
	t.Helper()
	var all cachev1.MemcachedList
	must(t, api.List(t.Context(), &all, client.InNamespace(ns)))
	var silent []string
	for _, m := range all.Items {
		if len(m.Status.Conditions) == 0 {
			silent = append(silent, m.Name)
		}
	}
	return silent
}

func toldOnce(t *testing.T, ns, name string) error {
	t.Helper()
	var events eventsv1.EventList
	must(t, api.List(t.Context(), &events, client.InNamespace(ns)))
	of := slices.DeleteFunc(events.Items, func(e eventsv1.Event) bool { return e.Regarding.Name != name })
	if len(of) != 1 || of[0].Reason != "RollingOut" || !strings.Contains(of[0].Note, "Created ") {
		return fmt.Errorf("%d events: %v", len(of), of)
	}
	return nil
}
