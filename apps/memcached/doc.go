// Package memcached is the application memcached.
//
// Memcached servers are independent of each other and store nothing durable. So there are
// no steps: the Deployment rolls out by itself. [Planner.Next] only reports progress and
// problems.
package memcached

// Name is the application's name in labels and metrics.
const Name = "memcached"

// Planner implements lifecycle.Planner for memcached. It is stateless.
type Planner struct{}
