package policy_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
)

func TestPolicySelects(t *testing.T) {
	all := func(v1alpha1.ObjectSelector) v1alpha1.ObjectSelector { return v1alpha1.ObjectSelector{} }
	cases := map[string]struct {
		selector v1alpha1.ObjectSelector
		want     bool
	}{
		"All":             {all(v1alpha1.ObjectSelector{}), true},
		"Kind":            {v1alpha1.ObjectSelector{Kinds: []string{"Other", "Ring"}}, true},
		"KindGroup":       {v1alpha1.ObjectSelector{Kinds: []string{"Ring.g"}}, true},
		"OtherGroup":      {v1alpha1.ObjectSelector{Kinds: []string{"Ring.h"}}, false},
		"OtherKind":       {v1alpha1.ObjectSelector{Kinds: []string{"ring"}}, false},
		"Namespace":       {v1alpha1.ObjectSelector{Namespaces: []string{"team"}}, true},
		"OtherNamespace":  {v1alpha1.ObjectSelector{Namespaces: []string{"tea"}}, false},
		"Labels":          {v1alpha1.ObjectSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}, true},
		"OtherLabels":     {v1alpha1.ObjectSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}}, false},
		"NamespaceLabels": {v1alpha1.ObjectSelector{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "live"}}}, true},
		"OtherSpace":      {v1alpha1.ObjectSelector{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "test"}}}, false},
		"NoSuchLabel":     {v1alpha1.ObjectSelector{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpExists}}}}, false},
		"One":             {v1alpha1.ObjectSelector{Kinds: []string{"Ring"}, Namespaces: []string{"other"}}, false},
		"Wrong": {v1alpha1.ObjectSelector{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Is"}},
		}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := made("p", func(s *v1alpha1.OperationPolicySpec) { s.Selector = c.selector })
			read := policy.New(&p)
			if got := read.Selects(orders); got != c.want {
				t.Errorf("got %v, want %v; faults %q", got, c.want, read.Faults)
			}
			if faulty := len(read.Faults) > 0; faulty != (name == "Wrong") {
				t.Errorf("faults %q", read.Faults)
			}
		})
	}
}

// TestUnknownNamespaceLabelsMatch: an operator that does not know the labels of a namespace obeys the policy
// in what holds steps.
func TestUnknownNamespaceLabelsMatch(t *testing.T) {
	p := made("p", func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "test"}}
	})
	blind := orders
	blind.NamespaceLabels = nil
	if read := policy.New(&p); !read.Selects(blind) || read.Selects(orders) {
		t.Errorf("unknown labels: selected %t; other labels: selected %t", read.Selects(blind), read.Selects(orders))
	}
}

// A policy that may not select the object, because the labels of its namespace are not known, holds its steps, or pauses it. It does not
// roll it back, leave its drift, or wait for nodes.
func TestUnknownNamespaceLabelsRollNothingBack(t *testing.T) {
	all := policy.NewSet([]v1alpha1.OperationPolicy{made("live", func(s *v1alpha1.OperationPolicySpec) {
		s.Selector.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "live"}}
		s.OnFailure, s.DriftPolicy, s.Paused = v1alpha1.FailurePolicyRollback, v1alpha1.DriftPolicyReport, true
		s.NodeMaintenance = &v1alpha1.NodeMaintenance{Nodes: []string{"n"}}
		s.Freeze = &v1alpha1.Freeze{Reason: "sale"}
	})})
	blind := orders
	blind.NamespaceLabels = nil
	for name, about := range map[string]policy.Object{"known": orders, "unknown": blind} {
		selecting, known := all.Selecting(about), name == "known"
		e := selecting.Effective()
		if rolls := e.OnFailure == v1alpha1.FailurePolicyRollback; rolls != known {
			t.Errorf("%s: onFailure %s", name, e.OnFailure)
		}
		if leaves := e.Drift == v1alpha1.DriftPolicyReport; leaves != known {
			t.Errorf("%s: driftPolicy %s", name, e.Drift)
		}
		if !e.Paused() || (len(selecting.Maintenance()) > 0) != known {
			t.Errorf("%s: paused %t, maintenance %v", name, e.Paused(), selecting.Maintenance())
		}
		change := policy.Question{Object: about, Step: lifecycle.Step{Name: "Restart", Class: lifecycle.ClassDisruptive}}
		if v := selecting.Judge(change); len(v.Refusals) != 1 {
			t.Errorf("%s: the freeze holds %v", name, v.Refusals)
		}
	}
	if e := all.Selecting(orders).Effective(); !e.Paused() {
		t.Error("the policy itself has changed")
	}
}
