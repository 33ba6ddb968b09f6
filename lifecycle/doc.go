// Package lifecycle is the vocabulary in which an author writes down how an application
// is operated. Everything in it is a value or a pure function.
//
// # What an author writes
//
// An application consists of two parts. Its [Planner] judges: it says what must exist,
// which one step comes next, what that step does to the world, and what the status says.
// It is pure: without I/O, clock or randomness. So the same rules run in production, in
// a preview and in the simulator. Its [Driver] does the I/O: it observes and acts, and
// it decides nothing.
//
// # World
//
// The world is the author's own type: a snapshot of all facts on which the rules decide,
// such as members, pods and volumes. What cannot be observed is a value of it (unknown,
// since when).
//
// # Resources and steps
//
// An object that does no harm when it is applied (a Service, a ConfigMap, a
// PodDisruptionBudget, a Deployment that rolls out by itself) is a resource. Return it
// from [Planner.Resources]: the engine applies it, repairs drift, and prunes what is no
// longer returned. A change that can do harm (adding a member, deleting a volume, moving
// a leader) is a [Step]. The engine takes at most one step per reconcile.
//
// # Rules
//
// Write [Planner.Next] as a list of rules in order of precedence. Each rule is a function
// that returns a [Decision], or the zero Decision if it does not apply:
//
//	func (Planner) Next(want *v1.Ring, seen World, now time.Time) lifecycle.Decision {
//		return lifecycle.First(
//			finishBegun(seen),       // finish a change that has begun
//			deadMember(seen, now),   // repair before any change
//			tooFewMembers(want, seen),
//			tooManyMembers(want, seen),
//		)
//	}
//
// The engine evaluates all rules and takes the first that applies, so each rule must make
// sense in every world, also in those in which an earlier rule applies. While a policy
// holds a change, the engine takes the first repair behind it, up to a rule that waits or
// blocks.
//
// A rule returns one of [Proceed], [WaitFor], [Block], [Fail] or [RetryIn]. If no rule
// applies, the object is [Settled].
//
// The Decision is the only source of the log line, the event, the conditions, the history
// entry and the time of the next reconcile, so they cannot disagree.
//
// # Gates
//
// A [Gate] is a promise with a measure of how badly a world violates it. The engine holds
// a step if the world during the step violates the promise worse than the world before it.
// A step that makes nothing worse passes, so no gate blocks its own repair. An absolute
// gate also refuses every destructive step while its promise is violated.
//
// # Tests
//
// Package plannertest follows the rules from every small world, compares Effect with a
// model, and reports a mistake with the shortest story that proves it. Package sim runs
// whole scenarios with faults.
//
// # Time
//
// Time is an argument. A wait names what it waits for and since when. If it can end badly
// it has a deadline, and a rule of Next applies once the deadline has passed.
package lifecycle
