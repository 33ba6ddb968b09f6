// Package plannertest is the test kit for authors of operators. It checks a Planner, and reports each mistake with the
// shortest sequence of decisions that proves it. It needs no cluster and no clock.
//
// # Worlds
//
// Start with [Worlds]: enumerate every small world of your application and every spec, and let the kit follow the rules
// from each of them. Each wait succeeds and each step has its Effect, until the rules settle.
//
//	func TestEverySmallWorld(t *testing.T) {
//		plannertest.Worlds(t, plannertest.Subject[*v1.Ring, ring.World]{Planner: ring.Planner{}, Gates: ring.Gates()}, smallWorlds)
//	}
//
// Each kind of mistake has a name, see [Fault]: a method that is not deterministic or modifies its arguments; rules that
// loop, do not terminate, or wait for an event that changes nothing; a gate that holds forever; a deadline that Next
// ignores; a settled world that does not satisfy the spec.
//
// # Effects
//
// The rules rely on the prediction of Effect. [Effects] runs your model without faults and compares: after each step and
// each wait the model must reach the predicted world, and on the way no gate may be violated more than predicted for the
// step.
//
// # Faults
//
// Package lifecycle/sim adds faults. A contract suite that runs on the model and on the real application keeps the model
// correct; a [Harness] is the model's side of such a suite, and operator/testcluster the other.
//
// # Previews
//
// [Subject.Preview] returns the plan of `kubectl governor plan` as lines for table tests.
package plannertest
