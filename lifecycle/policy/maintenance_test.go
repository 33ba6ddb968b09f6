package policy_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

func TestMaintenanceNamesNodes(t *testing.T) {
	rack := &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "7"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Near"}}}
	cases := map[string]struct {
		reason string
		said   *v1alpha1.NodeMaintenance
		labels map[string]string
		covers bool
		fault  string
	}{
		"Name":      {"by its name", &v1alpha1.NodeMaintenance{Nodes: []string{"n0", "n1"}}, nil, true, ""},
		"Other":     {"another node", &v1alpha1.NodeMaintenance{Nodes: []string{"n0"}}, map[string]string{}, false, ""},
		"Label":     {"by its labels", &v1alpha1.NodeMaintenance{Selector: rack}, map[string]string{"rack": "7"}, true, ""},
		"NoLabel":   {"other labels", &v1alpha1.NodeMaintenance{Selector: rack}, map[string]string{"rack": "8"}, false, ""},
		"Unknown":   {"unknown labels", &v1alpha1.NodeMaintenance{Selector: rack}, nil, false, ""},
		"Either":    {"one of both is enough", &v1alpha1.NodeMaintenance{Nodes: []string{"n1"}, Selector: rack}, nil, true, ""},
		"Nothing":   {"a policy about something else", nil, map[string]string{}, false, ""},
		"BrokenOne": {"a selector that cannot be read names nothing", &v1alpha1.NodeMaintenance{Selector: broken}, map[string]string{"rack": "7"}, false, "spec.nodeMaintenance.selector selects nothing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.OperationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			p.Spec.NodeMaintenance = c.said
			read := policy.New(p)
			ctx := lifecycle.WithMaintenance(t.Context(), policy.Set{read}.Maintenance())
			if by := lifecycle.MaintenanceBy(ctx, "n1", c.labels); (by == `the policy "p"`) != c.covers {
				t.Errorf("%s: %q", c.reason, by)
			}
			if got := strings.Join(read.Faults, " "); !strings.HasPrefix(got, c.fault) || (got == "") != (c.fault == "") {
				t.Errorf("faults: %s", got)
			}
		})
	}
}
