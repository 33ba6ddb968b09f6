package engine

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/engine/internal/publish"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// maintainedDriver notes who says that the node n1 is in maintenance.
type maintainedDriver struct{ by []string }

func (d *maintainedDriver) Observe(ctx context.Context, _ *fake) (struct{}, error) {
	d.by = append(d.by, lifecycle.MaintenanceBy(ctx, "n1", nil))
	return struct{}{}, nil
}

func (d *maintainedDriver) Act(ctx context.Context, obj *fake, _ struct{}, _ lifecycle.Step) error {
	_, err := d.Observe(ctx, obj)
	return err
}

// The driver hears of nodes in maintenance from the policies that select the object, when
// it observes and when it acts.
func TestDriversKnowNodesInMaintenance(t *testing.T) {
	p := v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "rack-7"}}
	p.Spec.Selector.Namespaces = []string{"team-a"}
	p.Spec.NodeMaintenance = &v1alpha1.NodeMaintenance{Nodes: []string{"n1"}}
	all := policy.NewSet([]v1alpha1.OperationPolicy{p})
	for namespace, want := range map[string]string{"team-a": `the policy "rack-7"`, "team-b": ""} {
		d, e := &maintainedDriver{}, testEngine(time.Unix(0, 0))
		e.driver = d
		e.operator.policies.All.Store(&all)
		obj := &fake{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}}
		r := &reconciliation[*fake, struct{}]{Result: publish.Result{Before: obj, Object: obj, Decision: lifecycle.Proceed(lifecycle.Step{Name: "Step"})}, obj: obj, actFor: obj}
		e.observe(t.Context(), r)
		e.act(t.Context(), r)
		if len(d.by) != 2 || d.by[0] != want || d.by[1] != want {
			t.Errorf("in %s the driver hears %q, want %q", namespace, d.by, want)
		}
	}
}
