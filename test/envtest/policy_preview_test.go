package envtest_test

import "testing"

// A freeze holds the routine steps of a change, so a plan of the change says that. What is known of the spec that has
// settled says nothing of the changed one.
func TestAPlanInAFreezeIsHeld(t *testing.T) {
	a := previews(t, 2)
	policy := newPolicy(t, a.namespace, "sale", frozen)
	expect(t, a.namespace, 0, []string{"1. Add m000002", `HELD by the policy "` + policy.Name + `": frozen (sale)`}, "plan", "ring/r", "--set", "spec.size=3")
}
