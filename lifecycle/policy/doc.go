// Package policy evaluates OperationPolicies. For one object, one step and one time it
// returns the policies that hold the step, each with a message for the user and the time
// until which it holds.
//
// The package is pure. Its inputs are OperationPolicy and Approval objects of
// governor.dev/v1alpha1, which [New] parses once, and the state that the caller passes.
//
// If policies conflict, the strictest wins, and the message names each of them: a step is
// held while any policy holds it.
package policy
