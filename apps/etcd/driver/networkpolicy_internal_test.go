package driver

import "testing"

// What a step has put into effect is remembered until the status has it.
func TestTakenNetworkPolicy(t *testing.T) {
	var n networkPolicies
	want := plain("")
	want.UID, want.Spec.NetworkPolicy.Enabled = "u", true
	if got := n.of(want); got != nil {
		t.Errorf("before the step: %+v", got)
	}
	n.take(want)
	if got := n.of(want); got == nil || !got.Enabled {
		t.Errorf("after the step: %+v", got)
	}
	want.Status.NetworkPolicy = &want.Spec.NetworkPolicy
	n.of(want)
	if got := n.of(want); got != nil {
		t.Errorf("with the status: %+v", got)
	}
}
