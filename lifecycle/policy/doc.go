// Package policy is the judgement of what people say may be done, and when: it answers
// for one object, one step and one time which of the policies that select the object
// hold the step, with a sentence for the user, and until when.
//
// It is pure. What it judges from are OperationPolicy and Approval objects of
// governor.dev/v1alpha1, read once by [New], and what the caller knows of the world.
//
// Where policies disagree the stricter wins, and each of them is named: a step is held
// while any of them holds it.
package policy
