// Package plannertest is the test kit for the authors of operators: it puts a Planner on trial and says what is wrong with it,
// with the shortest story that proves it. It needs no cluster, and no clock.
//
// # Worlds
//
// Begin with [Worlds]: enumerate every small world that your application can be in, and every wish, and let the kit
// follow the rules from each of them. What they wait for happens, each step does what Effect says, until they settle.
//
//	func TestEverySmallWorld(t *testing.T) {
//		trial.Worlds(t, trial.Subject[*v1.Ring, ring.World]{Planner: ring.Planner{}, Gates: ring.Gates()}, smallWorlds)
//	}
//
// What can be wrong has a name each, see [Fault]: a method that answers differently to the same question or changes what
// it was given; rules that go round in a circle, never come to an end, or wait for what changes nothing; a gate that
// holds for ever; a deadline that Next ignores; a rest that is not what was wanted.
//
// # Reality
//
// The rules believe what Effect says. [Effects] lives lives in fair weather on your model and compares: after each step
// and each wait the model must get to the world that was predicted, and on the way no gate's promise may be broken worse
// than predicted for the step.
//
// # Lives
//
// Then let there be faults: package lifecycle/sim. A model that is held to a contract suite which runs on the real thing
// too cannot lie; a [Stage] is the model's side of such a suite, and operator/testcluster the other.
//
// # Previews
//
// [Preview] is what `kubectl governor plan` would show, in lines that fit into a table of tests.
package plannertest
