package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
)

// fleet creates clusters of one member in one namespace, and waits for them.
func fleet(t *testing.T, names ...string) []*cluster {
	t.Helper()
	first := newCluster(t)
	var all []*cluster
	for _, name := range names {
		c := &cluster{client.ObjectKey{Namespace: first.key.Namespace, Name: name}, first.driver}
		c.Apply(t, func(s *etcdv1.EtcdClusterSpec) { s.Size, s.Version = 1, "3.6.16" })
		all = append(all, c)
	}
	for _, c := range all {
		c.settled(t)
	}
	return all
}

// restart is the first restart in the history that succeeded, and
// when the member served again.
func (c *cluster) restart(t *testing.T) (began, served time.Time) {
	t.Helper()
	for _, e := range c.history(t).Entries {
		if e.Step.Name != "Restart" || e.Result != history.ResultSucceeded {
			continue
		}
		served = e.At.Add(e.Duration)
		for _, a := range e.Waits {
			served = served.Add(a.Duration)
		}
		return e.At, served
	}
	t.Fatalf("%s was not restarted: %+v", c.key, c.history(t).Entries)
	return began, served
}

// refusedBy reports whether the history has a refusal by a gate of that name.
func (c *cluster) refusedBy(t *testing.T, gate string) bool {
	t.Helper()
	return slices.ContainsFunc(c.history(t).Entries, func(e history.Entry) bool {
		return e.Result == history.ResultRefused && strings.HasSuffix(e.HeldBy, "/"+gate)
	})
}

// TestWaves: an upgrade reaches the clusters of the last wave after the soak time of the first.
// A failing one stops at the first, and all clusters report it.
func TestWaves(t *testing.T) {
	const soak = 4 * time.Second
	all := fleet(t, "canary", "orders", "users")
	canary, others := all[0], all[1:]
	must(t, "-n", canary.key.Namespace, "label", "etcdcluster", "canary", "wave=first")
	canary.ruled(t, func(s *v1alpha1.OperationPolicySpec) {
		s.Canary = &v1alpha1.Canary{Soak: metav1.Duration{Duration: soak}, Waves: []v1alpha1.Wave{
			{Name: "first", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"wave": "first"}}},
		}}
	})
	give := func(v string) {
		for _, c := range all {
			c.Apply(t, version(v))
		}
	}
	give("3.7")
	for _, c := range all {
		c.settled(t)
	}
	_, served := canary.restart(t)
	for _, c := range others {
		began, _ := c.restart(t)
		if waited := began.Sub(served); waited < soak-time.Second || !c.refusedBy(t, "Canary") { // conditions have whole seconds
			t.Errorf("%s was restarted %s after the first wave was well, %+v", c.key, waited, c.history(t).Entries)
		}
	}
	before := [2]any{others[0].pod(t, "orders-0").UID, others[1].pod(t, "users-0").UID}
	give("3.7.99") // no such image
	canary.Settles(t, lifecycle.OutcomeBlocked, string(lifecycle.PodProblemImagePullBackOff))
	halted := fmt.Sprintf(`halted, because EtcdCluster %s of wave "first" is stalled: %s`, canary.key, lifecycle.PodProblemImagePullBackOff)
	for _, c := range others {
		c.held(t, halted)
		says(t, c.key.Namespace, 0, []string{halted, "HeldByPolicy"}, "status", "etcdcluster/"+c.key.Name)
	}
	says(t, canary.key.Namespace, 0, []string{string(lifecycle.PodProblemImagePullBackOff)}, "status", "etcdcluster/canary")
	canary.holding(t, 2)
	if now := [2]any{others[0].pod(t, "orders-0").UID, others[1].pod(t, "users-0").UID}; now != before {
		t.Error("the last wave was touched")
	}
	for _, c := range append(slices.Clone(others), canary) {
		c.Apply(t, version("3.7"))
	}
	canary.settled(t)
}

// holding waits until the policy's status reports the number of held objects.
func (c *cluster) holding(t *testing.T, held int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("the policy holds %d", held), func(ctx context.Context) error {
		p := &v1alpha1.OperationPolicy{}
		if err := api.Get(ctx, client.ObjectKey{Name: c.key.Namespace}, p); err != nil || p.Status.Held != held {
			return fmt.Errorf("%w: %d, %w", errNotYet, p.Status.Held, err)
		}
		return nil
	})
}

// TestDisruptionBudgetAcrossClusters: two clusters with a simultaneous upgrade restart one after
// the other.
func TestDisruptionBudgetAcrossClusters(t *testing.T) {
	pair := fleet(t, "orders", "users")
	pair[0].ruled(t, func(s *v1alpha1.OperationPolicySpec) { s.Budget = &v1alpha1.Budget{MaxDisrupted: 1, Scope: "Fleet"} })
	for _, c := range pair {
		c.Apply(t, version("3.7"))
	}
	for _, c := range pair {
		c.settled(t)
	}
	first, second := pair[0], pair[1]
	if second.refusedBy(t, "Budget") == first.refusedBy(t, "Budget") {
		t.Errorf("one of them waits for the other: %+v, %+v", first.history(t).Entries, second.history(t).Entries)
	}
	if first.refusedBy(t, "Budget") {
		first, second = second, first
	}
	_, served := first.restart(t)
	if began, _ := second.restart(t); began.Before(served) {
		t.Errorf("%s was restarted at %s, when %s did not serve before %s", second.key, began, first.key, served)
	}
}
