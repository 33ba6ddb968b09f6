// Package lifecycle is the vocabulary in which an application's operational
// knowledge is written down. Everything in it is a value or a pure function.
//
// # What an author writes
//
// An application is two things. Its [Planner] is judgement: what must exist,
// which one step comes next, what that step does to the world, and what to tell
// the user. It is pure: no I/O, no clock, no randomness, so the same rules run in
// production, in a preview and in the simulator. Its [Driver] is contact with the
// world: it observes and it acts, and it decides nothing.
//
// # Resources and steps
//
// What cannot hurt (a Service, a ConfigMap, a PodDisruptionBudget, a Deployment
// that rolls by itself) is a resource: return it from [Planner.Resources] and the
// engine applies it every turn, repairs drift and prunes what is no longer
// returned. What can hurt (adding a member, deleting a volume, moving a leader) is
// a [Step]: the engine takes at most one per turn.
//
// # Rules
//
// Write [Planner.Next] as a list of rules in order of precedence, each a function
// that either speaks or stays silent:
//
//	func (Planner) Next(want *v1.Ring, seen World, now time.Time) lifecycle.Decision {
//		return lifecycle.First(
//			finishBegun(seen),       // a change already begun outranks every wish
//			deadMember(seen, now),   // repair before any wish
//			tooFewMembers(want, seen),
//			tooManyMembers(want, seen),
//		)
//	}
//
// A policy may hold a wish. Then the engine takes the first repair behind it, up to a rule
// that waits or blocks. So each rule has to make sense in every world, also in those in
// which an earlier one speaks.
//
// A rule that speaks returns one of [Proceed], [WaitFor], [Block], [Fail] or [RetryIn]; a
// rule with nothing to say returns the zero [Decision]. When no rule speaks the
// object is [Settled].
//
// The Decision is the only source of the log line, the event, the conditions, the
// history entry and the time of the next turn, so they cannot disagree.
//
// # Gates
//
// A [Gate] is a promise with a measure of how badly a world breaks it. A step is
// held if the world during the step breaks the promise worse than the world
// before it. A step that makes nothing worse therefore always passes, and no gate
// can block its own repair.
//
// All rules are asked, and the first that speaks wins: each has to make sense in
// every world, also in those in which an earlier one speaks.
//
// # Tests
//
// Package trial follows the rules from every small world, holds Effect to a model,
// and says what is wrong with the shortest story that proves it. Package sim lives
// whole lives with faults.
//
// # Time
//
// Time is an argument. A wait names what it waits for and since when; if it can
// end badly it has a deadline, and a rule of Next speaks once the deadline passed.
package lifecycle
