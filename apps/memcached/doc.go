// Package memcached knows how to run memcached.
//
// Memcached servers know nothing of each other and keep nothing worth saving, so
// there are no steps: a Deployment may roll as it likes. What is left of the
// runbook is to say truthfully what hinders it. [Planner.Next] is that page.
package memcached

// Name is the application's name in labels and metrics.
const Name = "memcached"

// Planner is memcached's judgement. It has no state.
type Planner struct{}
