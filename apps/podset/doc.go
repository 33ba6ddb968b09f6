// Package podset knows how to keep a number of pods alike.
//
// The pods know nothing of each other. What belongs to the set are the pods that
// bear its labels and have no other controller: a pod that loses the labels is let
// go, one that has them and no owner is taken in. What hurts is to delete a pod that
// works, so of those that are too many the least useful go, and a changed template
// replaces only as many at a time as may be away. [Planner.Next] is that page.
package podset

// Name is the application's name in labels and metrics.
const Name = "podset"

// Planner is the judgement about pod sets. It has no state.
type Planner struct{}
